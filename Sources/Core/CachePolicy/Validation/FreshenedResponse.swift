import HTTPCore

/// A stored response updated by a 304 or by the response to a HEAD (RFC 9111 §3.2, §4.3.4, §4.3.5).
public struct FreshenedResponse: Sendable, Equatable {
    /// What happens to the stored response after the current request has been answered.
    public enum Storage: Sendable, Equatable {
        /// Replace its head, times and Vary key by the new ones.
        case replaceHead
        /// Keep it as it was: the update may not be stored for others (it answered a request with
        /// `no-store`, one with Authorization, or one with Cookie and gave no explicit freshness).
        case leave(NotStoredReason)
        /// Drop it: according to the origin it must no longer be stored.
        case remove(NotStoredReason)
    }

    /// The new stored head.
    public let head: [UInt8]
    /// Its metadata, with the stored body's length.
    public let metadata: StoredMetadata
    /// The secondary key for `replaceHead`: the new head's Vary with the request's values.
    public let vary: VaryKey
    /// What to do with the stored response.
    public let storage: Storage
    /// The update's lines of Set-Cookie, Set-Cookie2 and the fields that `private` names, each
    /// with CRLF: for the client whose request it answers, once, after the fields of ``head``, and
    /// for nobody else.
    public let personalFields: [UInt8]

    /// The fields of an update that are never merged into a stored head: those that are not stored
    /// at all, those that describe the stored body's bytes, and those that set a cookie, which is
    /// for one client even if the stored response is for all.
    static let notUpdated = StoredHead.excluded.union(
        FieldIDSet([.contentLength, .contentEncoding, .contentRange, .setCookie]))

    /// Merges an update into a stored head: every field in the update replaces all lines with that
    /// name, the others stay (RFC 9111 §3.2).
    ///
    /// - Parameters:
    ///   - stored: the stored response's metadata.
    ///   - storedHead: its head.
    ///   - update: the 304, or the 200 to HEAD, that updates it.
    ///   - updateBytes: the update's bytes.
    ///   - request: the request that the update answers.
    ///   - requestBytes: its bytes.
    ///   - requestTime: when it was sent.
    ///   - responseTime: when the update's head was complete.
    ///   - hasQuery: whether the key's URI has a query.
    ///   - options: the policy.
    /// - Returns: `nil` if the stored head is damaged.
    public init?(
        merging stored: StoredMetadata, storedHead: Span<UInt8>, with update: ResponseHead,
        in updateBytes: Span<UInt8>, request: borrowing RequestHead, in requestBytes: Span<UInt8>,
        requestTime: Int64, responseTime: Int64, hasQuery: Bool, options: PolicyOptions
    ) {
        var incoming = ResponseFacts(update, in: updateBytes, responseTime: responseTime)
        if let route = options.box?.options {
            incoming.target(
                TargetedDirectives.first(of: route.targetedFields, in: update, updateBytes))
        }
        let times = StoredTimes(
            requestTime: requestTime, responseTime: responseTime,
            initialAge: incoming.initialAge(requestTime: requestTime))
        let merge = HeadMerge(update, in: updateBytes, responseTime: responseTime)
        guard let merged = merge.applied(to: storedHead, updateBytes: updateBytes),
            let directives = ResponseFacts(
                storedHead: merged.span, times: times, options: options)?.directives
        else { return nil }
        let unstored = directives.unstoredFields(options) {
            QualifiedFields(storedHead: merged.span, of: $0)
        }
        let head = unstored?.removed(fromStoredHead: merged) ?? merged
        guard let facts = ResponseFacts(storedHead: head.span, times: times, options: options),
            var metadata = StoredMetadata(
                storedHead: head.span, times: times, hasQuery: hasQuery, options: options)
        else { return nil }
        metadata.bodyBytes = stored.bodyBytes
        self.head = head
        self.metadata = metadata
        personalFields = Self.personalFields(of: update, in: updateBytes, unstored)
        let requestDirectives = CacheDirectives(request: request.fields, in: requestBytes)
        let isAuthorized = request.fields.contains(.authorization)
        var storage = Storage.replaceHead
        var vary = VaryKey.none
        if requestDirectives.flags.contains(.noStore) {
            storage = .leave(.requestNoStore)
        } else if let reason = options.reasonAgainstSharing(
            metadata.lifetime, metadata.source, for: request)
        {
            storage = .leave(reason)
        } else if let reason = incoming.reasonAgainstOverriding(for: request, options: options) {
            storage = .leave(reason)
        } else if let reason = facts.reasonAgainstStoring(
            isAuthorized: isAuthorized, options: options)
        {
            storage = reason == .authorization ? .leave(reason) : .remove(reason)
        } else {
            do throws(NotStoredReason) {
                vary = try facts.vary.key(
                    in: head.span, for: request, in: requestBytes, options: options)
            } catch {
                storage = .remove(error)
            }
        }
        self.vary = vary
        self.storage = storage
    }

    private static func personalFields(
        of update: ResponseHead, in bytes: Span<UInt8>, _ unstored: QualifiedFields?
    ) -> [UInt8] {
        guard unstored != nil || update.fields.contains(.setCookie) else { return [] }
        return [UInt8](unsafeUninitializedCapacity: update.length) {
            var writer = HeadWriter(UnsafeMutableRawBufferPointer($0))
            for index in 0..<update.fields.endIndex {
                let field = update.fields[index]
                guard !field.isNominated, !StoredHead.excluded.contains(field.id),
                    field.id == .setCookie || unstored?.contains(field.name, in: bytes) ?? false
                else { continue }
                writer.append(update.fields.line(at: index), of: bytes)
            }
            $1 = writer.count
        }
    }
}

extension FreshenedResponse {
    /// The hit, at `now`, in the form that `ValidationOutcome.freshen` gave.
    public func hit(_ form: HitForm, at now: Int64) -> CacheHit {
        let age = metadata.age(at: now)
        return CacheHit(form: form, age: age, timeToLive: metadata.lifetime - age, stale: nil)
    }
}

/// One merge of a stored head with an update's fields.
private struct HeadMerge {
    let update: ResponseHead
    /// The fields of the update that are not merged, in addition to nominated ones.
    let dropped: FieldIDSet
    let hasDate: Bool
    let responseTime: Int64

    init(_ update: ResponseHead, in updateBytes: Span<UInt8>, responseTime: Int64) {
        self.update = update
        self.responseTime = responseTime
        hasDate = StoredHead.hasValidDate(
            update.fields, in: updateBytes, responseTime: responseTime)
        var dropped = FreshenedResponse.notUpdated
        if !hasDate { dropped.insert(.date) }
        self.dropped = dropped
    }

    /// The merged head; `nil` if the stored one is damaged.
    func applied(to storedHead: Span<UInt8>, updateBytes: Span<UInt8>) -> [UInt8]? {
        var isDamaged = false
        let capacity = storedHead.count + update.length + StoredHead.maximumAddedBytes
        let head = [UInt8](unsafeUninitializedCapacity: capacity) {
            var writer = HeadWriter(UnsafeMutableRawBufferPointer($0))
            var lines = StoredLines(storedHead)
            writer.append(lines.statusLine, of: storedHead)
            while let line = lines.next(in: storedHead) {
                // The Date belongs to the age: an update without one was generated when it arrived.
                if line.id == .date || isReplaced(line, in: storedHead, updateBytes) { continue }
                writer.append(line.line, of: storedHead)
            }
            writer.appendFields(
                update.fields, of: updateBytes, omitting: dropped, dropsNominated: true)
            if !hasDate { writer.append(field: .date, date: responseTime) }
            // The stored content's trailers stay with it.
            if let trailers = lines.trailers {
                writer.append(storedHead.extracting(trailers...))
            }
            isDamaged = lines.isDamaged || writer.overflowed
            $1 = writer.count
        }
        return isDamaged ? nil : head
    }

    private func isTaken(_ field: Field) -> Bool {
        !field.isNominated && !dropped.contains(field.id)
    }

    private func isReplaced(
        _ line: StoredLine, in storedHead: Span<UInt8>, _ updateBytes: Span<UInt8>
    ) -> Bool {
        for field in update.fields
        where field.name.count == line.name.count && isTaken(field)
            && updateBytes.extracting(field.name.indices).equalsIgnoringCase(
                storedHead.extracting(line.name.indices))
        {
            return true
        }
        return false
    }
}

extension ResponseFacts {
    /// The facts of a stored head; `nil` if it is damaged.
    init?(storedHead: Span<UInt8>, times: StoredTimes, options: PolicyOptions) {
        var lines = StoredLines(storedHead)
        self.init(status: lines.status, responseTime: times.responseTime)
        while let line = lines.next(in: storedHead) {
            absorb(line.id, line.value, in: storedHead)
        }
        if lines.isDamaged { return nil }
        if let route = options.box?.options {
            target(
                TargetedDirectives.first(of: route.targetedFields, inStoredHead: storedHead))
        }
        settle(options)
    }
}

/// The effect of a response to HEAD on the stored response to GET with the same keys (RFC 9111
/// §4.3.5).
public enum HeadUpdate: UInt8, Sendable, CaseIterable {
    /// None: one of the two is not a 200.
    case none
    /// They agree: update the stored response (`FreshenedResponse`).
    case freshen
    /// They disagree: the stored response is outdated and must be dropped.
    case invalidate

    /// Compares the validators that the response to HEAD has, and the lengths if both are known.
    public static func of(
        _ response: ResponseHead, in bytes: Span<UInt8>, stored: StoredMetadata,
        storedHead: Span<UInt8>
    ) -> HeadUpdate {
        guard response.status == 200, stored.status == 200 else { return .none }
        let facts = ResponseFacts(
            response, in: bytes, responseTime: stored.times.responseTime)
        if !facts.entityTag.isEmpty,
            !EntityTag.areSame(
                facts.entityTag, in: bytes, stored.entityTag, in: storedHead)
        {
            return .invalidate
        }
        if facts.present.contains(.lastModified),
            facts.lastModifiedTime != stored.lastModifiedTime
        {
            return .invalidate
        }
        if let length = facts.contentLength, let body = stored.bodyBytes, length != body {
            return .invalidate
        }
        return .freshen
    }
}
