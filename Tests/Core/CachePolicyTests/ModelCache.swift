import HTTPCore

@testable import CachePolicy

/// A shared cache in a few lines: calls the policy in the same order as the gateway. It keeps what
/// the disk tier would keep, and rebuilds the rest each time.
struct ModelCache {
    /// One stored response.
    struct Entry {
        let key: CacheKey
        let vary: VaryKey
        let head: [UInt8]
        let times: StoredTimes
        let body: String
    }

    /// What the client and the origin see for one request.
    struct Result {
        /// Response to the client as text, without Via, Connection and the empty line.
        var head = ""
        var body = ""
        /// The request was sent to the origin.
        var isForwarded = false
        /// The conditional fields it was sent with.
        var conditions = ""
    }

    /// The origin's answer; `nil` for a lost connection.
    typealias Origin = (_ conditions: String) -> (response: Response, body: String)?

    var entries: [Entry] = []
    var options = PolicyOptions()

    /// One request `offset` seconds after `start`.
    mutating func send(_ request: Request, at offset: Int64, origin: Origin) -> Result {
        let key = Self.key(of: request)
        if let reason = CacheDecision.reasonAgainstLookup(of: request.head) {
            return forward(request, key, .init(reason: reason), at: offset, origin)
        }
        let candidates = entries.filter { $0.key == key }
        guard
            let index = entries.lastIndex(where: { $0.key == key && $0.vary.matches(request) }),
            let metadata = metadata(of: entries[index])
        else {
            let decision = CacheDecision.missing(
                candidates.isEmpty ? .uriMiss : .varyMiss, for: request.head,
                in: request.bytes.span)
            return act(on: decision, request, key, nil, at: offset, origin)
        }
        let entry = entries[index]
        let decision = CacheDecision.decide(
            for: request.head, in: request.bytes.span, stored: metadata,
            storedHead: entry.head.span, now: start + offset, options: options)
        return act(on: decision, request, key, index, at: offset, origin)
    }

    private mutating func act(
        on decision: CacheDecision, _ request: Request, _ key: CacheKey, _ index: Int?,
        at offset: Int64, _ origin: Origin
    ) -> Result {
        switch decision {
        case .hit(let hit):
            guard let index else { return Result(head: "hit without an entry") }
            return answer(hit, from: entries[index])
        case .gatewayTimeout: return Result(head: "HTTP/1.1 504 Gateway Timeout\r\n")
        case .forward(let reason):
            if let index, let hit = standIn(index, request, at: offset, origin("")) { return hit }
            return forward(request, key, .init(reason: reason), at: offset, origin)
        case .validate(let validation):
            guard let index else { return Result(head: "validation without an entry") }
            return validate(validation, request, key, index, at: offset, origin)
        }
    }

    /// The stale response in place of an error, if the stored response cannot be validated.
    private func standIn(
        _ index: Int, _ request: Request, at offset: Int64,
        _ answer: (response: Response, body: String)?
    ) -> Result? {
        let failure = answer.map { OriginErrorReason.status($0.response.head.status) }
        let entry = entries[index]
        guard let stored = metadata(of: entry) else { return nil }
        let hit = CacheHit.inPlaceOfFailure(
            failure ?? .unreachable, stored: stored, storedHead: entry.head.span,
            for: request.head, in: request.bytes.span, now: start + offset, options: options)
        var result = hit.map { self.answer($0, from: entry) }
        result?.isForwarded = true
        return result
    }

    private func metadata(of entry: Entry) -> StoredMetadata? {
        var metadata = StoredMetadata(
            storedHead: entry.head.span, times: entry.times, hasQuery: entry.key.hasQuery,
            options: options)
        metadata?.bodyBytes = UInt64(entry.body.utf8.count)
        return metadata
    }

    private func answer(
        _ hit: CacheHit, from entry: Entry, status: CacheStatus? = nil
    ) -> Result {
        guard let metadata = metadata(of: entry) else { return Result(head: "damaged") }
        let head = written {
            append(hit, metadata, entry.head, status, to: &$0)
        }
        switch hit.form {
        case .full: return Result(head: head, body: entry.body)
        case .headOnly, .notModified, .rangeNotSatisfiable: return Result(head: head)
        case .partial(let first, let last, _):
            let bytes = Array(entry.body.utf8)[Int(first)...Int(last)]
            return Result(head: head, body: text(bytes))
        case .several: return Result(head: head)
        }
    }

    private mutating func forward(
        _ request: Request, _ key: CacheKey, _ status: CacheStatus.Forwarded, at offset: Int64,
        _ origin: Origin
    ) -> Result {
        guard let (response, body) = origin("") else {
            return Result(head: "HTTP/1.1 502 Bad Gateway\r\n", isForwarded: true)
        }
        var result = pass(response, body, to: request, key, status, at: offset)
        result.isForwarded = true
        return result
    }

    /// Forwards a response, storing it if allowed.
    private mutating func pass(
        _ response: Response, _ body: String, to request: Request, _ key: CacheKey,
        _ status: CacheStatus.Forwarded, at offset: Int64
    ) -> Result {
        var status = status
        for target in Invalidation.keys(
            for: request.head, key: key, response: response.head, in: response.bytes.span)
        {
            entries.removeAll { $0.key == target }
        }
        if request.head.method == .head { update(by: response, to: request, key, at: offset) }
        let decision = StoreDecision.decide(
            on: response.head, in: response.bytes.span, to: request.head,
            in: request.bytes.span, requestTime: start + offset, responseTime: start + offset,
            key: key, options: options)
        switch decision {
        case .doNotStore(let reason): status.notStored = reason
        // It keeps no parts.
        case .store(let storable) where storable.part != nil: status.notStored = .partialContent
        case .store(let storable):
            let head = StoredHead.bytes(
                of: response.head, in: response.bytes.span, for: storable)
            entries.removeAll { $0.key == key && $0.vary == storable.vary }
            entries.append(
                Entry(
                    key: key, vary: storable.vary, head: head, times: storable.times, body: body))
            status.isStored = true
        }
        let line = written { CacheStatus.forwarded(status).append(to: &$0) }
        return Result(head: text(response.bytes.dropLast(2)) + line, body: body)
    }

    private mutating func update(
        by response: Response, to request: Request, _ key: CacheKey, at offset: Int64
    ) {
        for index in entries.indices.reversed()
        where entries[index].key == key && entries[index].vary.matches(request) {
            let entry = entries[index]
            guard let stored = metadata(of: entry) else { continue }
            switch HeadUpdate.of(
                response.head, in: response.bytes.span, stored: stored,
                storedHead: entry.head.span)
            {
            case .none: break
            case .invalidate: entries.remove(at: index)
            case .freshen:
                _ = freshen(index, with: response, for: request, at: offset)
            }
        }
    }

    private mutating func validate(
        _ validation: ValidationRequest, _ request: Request, _ key: CacheKey, _ index: Int,
        at offset: Int64, _ origin: Origin
    ) -> Result {
        let entry = entries[index]
        guard let stored = metadata(of: entry) else { return Result(head: "damaged") }
        let conditions = written {
            validation.appendFields(
                for: request.head, in: request.bytes.span, storedHead: entry.head.span, to: &$0)
        }
        guard let (response, body) = origin(conditions) else {
            let hit = CacheHit.inPlaceOfFailure(
                .unreachable, stored: stored, storedHead: entry.head.span, for: request.head,
                in: request.bytes.span, now: start + offset, options: options)
            var result = hit.map { answer($0, from: entry) }
            result?.isForwarded = true
            return result ?? Result(head: "HTTP/1.1 502 Bad Gateway\r\n", isForwarded: true)
        }
        let status = CacheStatus.Forwarded(reason: validation.reason)
        var result: Result
        switch ValidationOutcome.of(
            response.head, in: response.bytes.span, to: validation, stored: stored,
            storedHead: entry.head.span, request: request.head, in: request.bytes.span,
            now: start + offset, options: options)
        {
        case .freshen(let form):
            guard let fresh = freshen(index, with: response, for: request, at: offset) else {
                return Result(head: "damaged")
            }
            let updated = Entry(
                key: key, vary: fresh.vary, head: fresh.head, times: fresh.metadata.times,
                body: entry.body)
            let forwarded = CacheStatus.Forwarded(
                reason: validation.reason, status: 304, isStored: fresh.storage == .replaceHead)
            result = answer(
                fresh.hit(form, at: start + offset), from: updated, status: .forwarded(forwarded))
        case .serveStale(let hit): result = answer(hit, from: entry)
        case .forwardNotModified: result = Result(head: text(response.bytes.dropLast(2)))
        case .retryWithoutConditions:
            entries.remove(at: index)
            result = forward(request, key, status, at: offset, origin)
        case .replace(let outdatesStored):
            if outdatesStored { entries.remove(at: index) }
            result = pass(response, body, to: request, key, status, at: offset)
        }
        result.isForwarded = true
        result.conditions = conditions
        return result
    }

    private mutating func freshen(
        _ index: Int, with response: Response, for request: Request, at offset: Int64
    ) -> FreshenedResponse? {
        let entry = entries[index]
        guard let stored = metadata(of: entry),
            let fresh = FreshenedResponse(
                merging: stored, storedHead: entry.head.span, with: response.head,
                in: response.bytes.span, request: request.head, in: request.bytes.span,
                requestTime: start + offset, responseTime: start + offset,
                hasQuery: entry.key.hasQuery, options: options)
        else { return nil }
        switch fresh.storage {
        case .replaceHead:
            entries[index] = Entry(
                key: entry.key, vary: fresh.vary, head: fresh.head,
                times: fresh.metadata.times, body: entry.body)
        case .leave: break
        case .remove: entries.remove(at: index)
        }
        return fresh
    }

    private static func key(of request: Request) -> CacheKey {
        var memory = [UInt8](repeating: 0, count: CacheKey.maximumBytes)
        return memory.withUnsafeMutableBytes { buffer in
            CacheKeyView.write(
                request.head, in: request.bytes.span, scheme: request.head.scheme, into: buffer
            ).map { CacheKey($0) } ?? CacheKey(bytes: [])
        }
    }
}
