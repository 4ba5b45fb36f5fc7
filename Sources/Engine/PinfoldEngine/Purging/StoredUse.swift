import CachePolicy
import CacheStore
import HTTPCore
import PinfoldConfiguration

/// Whether a stored response would answer a request now, and why or why not.
package struct StoredUse: Sendable, Equatable {
    /// What would become of the request.
    package enum Answer: String, Sendable, CaseIterable {
        /// It would be answered with the stored response.
        case used
        /// The same, although it is stale.
        case usedStale = "used-stale"
        /// The server would be asked whether the stored response is still valid.
        case confirmed
        /// The server would be asked, and the stored response not be used.
        case notUsed = "not-used"
    }

    package var answer: Answer
    /// The token of the reason; `nil` if it is fresh and used.
    package var reason: String?

    init(_ answer: Answer, _ reason: String? = nil) {
        self.answer = answer
        self.reason = reason
    }
}

/// A request as it would be made for a URL, to judge stored responses by.
package struct AssumedRequest: Sendable {
    private let url: String
    private let fields: [String]

    /// - Parameters:
    ///   - url: as a client requests it.
    ///   - fields: `Name: value` each.
    /// - Throws: the error for which such a request would be refused.
    package init(
        _ url: String, fields: [String], under policy: PolicySnapshot
    ) throws(WireError) {
        let text = String(url.prefix { $0 != "#" })
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }),
            fields.allSatisfy({ $0.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F } })
        else { throw .malformedTarget }
        self.url = text
        self.fields = fields
        var head = RequestHead()
        _ = try parse(into: &head, under: policy)
    }

    private var bytes: [UInt8] {
        let authority = url.drop { $0 != "/" }.dropFirst(2).prefix { !"/?".contains($0) }
        let names = fields.map { $0.prefix { $0 != ":" }.lowercasedASCII }
        let host = names.contains("host") ? [] : ["Host: \(authority)"]
        let lines = ["GET \(url) HTTP/1.1"] + host + fields
        return Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    }

    private func parse(
        into head: inout RequestHead, under policy: PolicySnapshot
    ) throws(WireError) -> [UInt8] {
        let bytes = bytes
        var parser = RequestHeadParser(limits: policy.headLimits)
        let progress = try parser.parse(bytes.span, into: &head)
        guard progress == .complete(headBytes: bytes.count), head.form == .absolute else {
            throw .malformedTarget
        }
        return bytes
    }

    /// The origin of the request by a listener that stores its response under this key; `nil` if
    /// none does.
    private func origin(
        of head: borrowing RequestHead, _ bytes: Span<UInt8>, key: [UInt8],
        under policy: PolicySnapshot, _ roles: [Ingress.Role]
    ) -> Origin? {
        let origins = OriginTable()
        for role in roles {
            let found: Origin? =
                switch role {
                case .forward, .transparent, .bound:
                    origins.origin(
                        host: bytes.extracting(head.host.indices), port: head.port,
                        scheme: head.scheme, policy: policy)
                case .reverse(let upstream): origins.origin(of: upstream, policy: policy)
                case .balanced(let route): origins.origin(of: route, policy: policy)
                case .admin, .proxied, .proof: nil
                }
            guard let found, key.starts(with: found.keyStart.bytes) else { continue }
            guard let rules = found.ruleSet else { return found }
            let index = rules.index(of: bytes.extracting(head.path.indices))
            return origins.ruled(found, route: index, of: rules)
        }
        return nil
    }

    /// What responses under a key are used by.
    package struct Basis {
        /// The fingerprint of what they must have been obtained under.
        package let fingerprint: UInt64
        /// The rules by which they are read.
        package let options: PolicyOptions
    }

    /// What responses under this key are used by; `nil` if no listener would use any.
    package func basis(
        ofKey key: [UInt8], under policy: PolicySnapshot, roles: [Ingress.Role]
    ) -> Basis? {
        var head = RequestHead()
        guard let bytes = try? parse(into: &head, under: policy) else { return nil }
        return origin(of: head, bytes.span, key: key, under: policy, roles).map {
            Basis(fingerprint: $0.fingerprint, options: $0.caching.options)
        }
    }

    /// Judges a stored response.
    ///
    /// - Parameters:
    ///   - key: its key.
    ///   - roles: those of the listeners.
    ///   - now: seconds since 1970.
    package func use(
        of response: CachedResponse, key: [UInt8], under policy: PolicySnapshot,
        roles: [Ingress.Role], now: Int64
    ) -> StoredUse {
        var head = RequestHead()
        guard let bytes = try? parse(into: &head, under: policy) else { return StoredUse(.notUsed) }
        guard let origin = origin(of: head, bytes.span, key: key, under: policy, roles) else {
            return StoredUse(.notUsed, "no-listener")
        }
        guard origin.cacheStores else {
            return StoredUse(.notUsed, ForwardReason.bypass.text)
        }
        if origin.caching.bypassFields.occur(in: head.fields, of: bytes.span) {
            return StoredUse(.notUsed, ForwardReason.bypassField.text)
        }
        // Under other rules of its route, it is read again by those in force.
        let differing = response.policy ^ origin.fingerprint
        guard differing & ~CacheRuleSet.changeable == 0 else {
            return StoredUse(.notUsed, ForwardReason.policy.text)
        }
        guard response.varyKey.isEmpty || response.varyKey.matches(head, in: bytes.span) else {
            return StoredUse(.notUsed, ForwardReason.varyMiss.text)
        }
        let decision = CacheDecision.decide(
            for: head, in: bytes.span, stored: response.metadata, storedHead: response.head.octets,
            now: now, options: origin.caching.options)
        return StoredUse(decision)
    }
}

extension StoredUse {
    fileprivate init(_ decision: CacheDecision) {
        switch decision {
        case .hit(let hit):
            self =
                hit.stale.map { StoredUse(.usedStale, "\($0.token)") } ?? StoredUse(.used)
        case .validate(let validation): self = StoredUse(.confirmed, validation.reason.text)
        case .forward(let reason), .gatewayTimeout(let reason):
            self = StoredUse(.notUsed, reason.text)
        }
    }
}

extension ForwardReason {
    fileprivate var text: String { "\(token)" }
}
