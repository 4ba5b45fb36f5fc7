import HTTPCore

/// What becomes of a stored response once the route's rules have changed.
public enum RereadResponse: Sendable, Equatable {
    /// It is kept, with other metadata.
    case kept(StoredMetadata)
    /// It would not have been stored under the rules, and is to be dropped.
    case outdated(NotStoredReason)
    /// It would get a lifetime, or be used in cases, that it does not state. Whether its request
    /// allowed that is not known any more: it is not used.
    case unknown
}

extension StoredMetadata {
    /// Reads a stored response by other rules.
    ///
    /// - Parameters:
    ///   - head: its stored head.
    ///   - hasQuery: whether the key's URI has a query.
    ///   - options: the policy with the route's present rules.
    public func reread(
        _ head: Span<UInt8>, hasQuery: Bool, options: PolicyOptions
    ) -> RereadResponse {
        guard let facts = ResponseFacts(storedHead: head, times: times, options: options),
            var metadata = StoredMetadata(
                storedHead: head, times: times, hasQuery: hasQuery, options: options)
        else { return .outdated(.storeUnavailable) }
        if let reason = facts.reasonAgainstStoring(isAuthorized: false, options: options) {
            return .outdated(reason)
        }
        if options.isShared {
            let isNewGuess =
                metadata.source.isGuess && source != .rule && source != metadata.source
            if isNewGuess || metadata.lifetime == 0 && options.usesUnasked { return .unknown }
        }
        metadata.bodyBytes = bodyBytes
        return .kept(metadata)
    }
}
