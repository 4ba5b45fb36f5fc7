import HTTPCore

/// The form in which a response's head is stored.
///
/// `HTTP/1.1 SP status SP reason CRLF`, then the field lines in the order received, each
/// `Name: value CRLF`, and no empty line at the end. A hit is written as these bytes, then
/// Content-Length if the head has none, Age, Cache-Status, Via, Connection, and the empty line
/// (`HitHead.append` does all but the last three).
///
/// Left out (RFC 9111 §3.1): hop-by-hop fields and those that Connection nominated, Trailer (the
/// stored response is sent without one), and Age, which lives on in `StoredTimes.initialAge`. Kept:
/// Via and Cache-Status with what upstream said in them: a hit adds its own member on a line of its
/// own after them, so the lists read from the origin outwards (RFC 9211 §2). A Date that is missing
/// or no date is replaced by the time of receipt (RFC 9110 §6.6.1).
package enum StoredHead {
    /// The fields that are never stored, besides nominated ones.
    package static let excluded = FieldIDSet.hopByHop.union(FieldIDSet([.trailer, .age]))

    /// Appends the stored form of a response's head to `out`.
    ///
    /// - Parameters:
    ///   - response: a final response, not 304, that `StoreDecision` lets in.
    ///   - bytes: the head's bytes.
    ///   - responseTime: when it was received, for Date.
    package static func append(
        _ response: ResponseHead, in bytes: Span<UInt8>, responseTime: Int64,
        to out: inout [UInt8]
    ) {
        out.reserveCapacity(out.count + response.length + 64)
        appendStatusLine(response.status, reason: bytes.extracting(response.reason.indices), &out)
        let keepsDate = hasValidDate(response.fields, in: bytes, responseTime: responseTime)
        for field in response.fields where !field.isNominated && !excluded.contains(field.id) {
            if field.id == .date && !keepsDate { continue }
            appendLine(field, of: bytes, to: &out)
        }
        if !keepsDate { appendDate(responseTime, to: &out) }
    }

    static func hasValidDate(
        _ fields: FieldSection, in bytes: Span<UInt8>, responseTime: Int64
    ) -> Bool {
        guard let date = fields.only(.date), !date.isNominated else { return false }
        let value = bytes.extracting(date.value.indices)
        return HTTPDate.parse(value, now: responseTime) != nil
    }

    static func appendStatusLine(_ status: UInt16, reason: Span<UInt8>, _ out: inout [UInt8]) {
        out += "HTTP/1.1 ".utf8
        out.append(UInt8(ascii: "0") + UInt8(status / 100 % 10))
        out.append(UInt8(ascii: "0") + UInt8(status / 10 % 10))
        out.append(UInt8(ascii: "0") + UInt8(status % 10))
        out.append(0x20)
        append(reason, to: &out)
        out += [0x0D, 0x0A]
    }

    static func appendLine(_ field: Field, of bytes: Span<UInt8>, to out: inout [UInt8]) {
        append(bytes.extracting(field.name.indices), to: &out)
        out += [0x3A, 0x20]
        append(bytes.extracting(field.value.indices), to: &out)
        out += [0x0D, 0x0A]
    }

    static func appendDate(_ time: Int64, to out: inout [UInt8]) {
        out += "Date: ".utf8
        let text = HTTPDate.format(time)
        for index in text.indices { out.append(text[index]) }
        out += [0x0D, 0x0A]
    }

    static func append(_ bytes: Span<UInt8>, to out: inout [UInt8]) {
        bytes.withUnsafeBufferPointer { out.append(contentsOf: $0) }
    }
}

extension StoredMetadata {
    /// The metadata of a stored head: at once after storing, and again from the disk tier's row.
    /// The same bytes, times, options and query give the same metadata.
    ///
    /// - Parameters:
    ///   - storedHead: bytes made by `StoredHead`.
    ///   - times: the times it was stored with.
    ///   - hasQuery: whether the key's URI has a query (`CacheKey.hasQuery`), for heuristics.
    ///   - options: the policy; a changed one changes heuristic lifetimes of what is stored.
    /// - Returns: nil when the bytes are not a stored head: a damaged row, to be dropped.
    package init?(
        storedHead head: Span<UInt8>, times: StoredTimes, hasQuery: Bool, options: PolicyOptions
    ) {
        var lines = StoredLines(head)
        guard head.count <= Int(Int32.max) else { return nil }
        var facts = ResponseFacts(status: lines.status, responseTime: times.responseTime)
        while let line = lines.next(in: head) { facts.absorb(line.id, line.value, in: head) }
        guard !lines.isDamaged else { return nil }
        self.init(
            facts, headBytes: UInt32(head.count), times: times, hasQuery: hasQuery,
            options: options, isWeak: EntityTag.isWeak(facts.entityTag, in: head))
    }

    private init(
        _ facts: ResponseFacts, headBytes: UInt32, times: StoredTimes, hasQuery: Bool,
        options: PolicyOptions, isWeak: Bool
    ) {
        let directives = facts.directives
        let (lifetime, source) = facts.lifetime(hasQuery: hasQuery, options: options)
        var flags: StoredFlags = []
        func set(_ flag: StoredFlags, if condition: Bool) { if condition { flags.insert(flag) } }
        set(.noCache, if: directives.flags.contains(.noCache))
        set(.neverStale, if: directives.forbidsStale)
        set(.sharedWithAuthorized, if: directives.allowsSharingAuthorized)
        set(.immutable, if: directives.flags.contains(.immutable))
        set(.weakEntityTag, if: isWeak)
        set(.strongLastModified, if: facts.isLastModifiedStrong)
        set(.hasContentLength, if: facts.present.contains(.contentLength))
        set(.hasVary, if: facts.present.contains(.vary))
        self.times = times
        freshUntil = times.responseTime - times.initialAge + lifetime
        self.lifetime = lifetime
        date = facts.date ?? times.responseTime
        lastModifiedTime = facts.lastModifiedTime
        staleIfErrorSeconds = directives.staleIfError ?? 0
        staleWhileRevalidateSeconds = directives.staleWhileRevalidate ?? 0
        bodyBytes = facts.contentLength
        entityTag = facts.entityTag
        lastModified = facts.lastModified
        self.headBytes = headBytes
        status = facts.status
        self.source = source
        self.flags = flags
    }
}
