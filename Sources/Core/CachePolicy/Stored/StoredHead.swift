import HTTPCore

/// The format in which a response's head is stored.
///
/// `HTTP/1.1 SP status SP reason CRLF`, then the field lines byte for byte and in the order
/// received, each with its CRLF, and no empty line at the end. A hit is written as these bytes,
/// then Content-Length if the head has none, Age, Cache-Status, Via, Connection, and the empty line
/// (`HitHead.appendFields` does all but the status line and the last three). A 206 is stored as the
/// head of the whole: `PART/1.1 200 OK CRLF`, then its fields without Content-Range.
///
/// Left out (RFC 9111 §3.1): hop-by-hop fields and those that Connection nominated; Trailer, which
/// is made anew from the trailers that are stored (`StoredTrailers`); and Age, which is kept in
/// `StoredTimes.initialAge`; and in a shared cache the fields that `private` names
/// (`QualifiedFields`). Via and Cache-Status keep upstream's members: a hit adds its own
/// member on a separate line after them, so that the lists are ordered from the origin outwards
/// (RFC 9211 §2). A missing or invalid Date is replaced by the time of receipt (RFC 9110 §6.6.1).
public enum StoredHead {
    /// The fields that are never stored, in addition to nominated ones.
    public static let excluded = FieldIDSet.hopByHop.union(FieldIDSet([.trailer, .age]))

    /// The maximum number of bytes by which a stored head exceeds the received one: a Date line.
    public static let maximumAddedBytes = 37

    /// Writes the stored form of a response's head.
    ///
    /// - Parameters:
    ///   - response: the response.
    ///   - bytes: the head's bytes.
    ///   - storable: the result of `StoreDecision` for it.
    ///   - writer: room for `response.length + maximumAddedBytes`.
    public static func write(
        _ response: ResponseHead, in bytes: Span<UInt8>, for storable: Storable,
        to writer: inout HeadWriter
    ) {
        var dropped = storable.hasDate ? excluded : excluded.union(FieldIDSet(.date))
        if storable.part == nil {
            writer.append("HTTP/1.1 ")
            writer.append(decimal: UInt64(response.status))
            writer.append(byte: 0x20)
            writer.append(response.reason, of: bytes)
        } else {
            writer.append(partsVersion)
            writer.append(" 200 OK")
            dropped.formUnion(FieldIDSet([.contentRange, .contentLength]))
        }
        writer.appendLineEnd()
        if let unstored = storable.unstored {
            writer.appendFields(response.fields, of: bytes, omitting: dropped, unstored)
        } else {
            writer.appendFields(
                response.fields, of: bytes, omitting: dropped, dropsNominated: true)
        }
        if !storable.hasDate {
            writer.append(field: .date, date: storable.times.responseTime)
        }
    }

    /// Returns the stored form of a response's head: like `write`, for code that may allocate.
    public static func bytes(
        of response: ResponseHead, in bytes: Span<UInt8>, for storable: Storable
    ) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: response.length + maximumAddedBytes) {
            var writer = HeadWriter(UnsafeMutableRawBufferPointer($0))
            write(response, in: bytes, for: storable, to: &writer)
            $1 = writer.count
        }
    }

    /// What the status line of a head begins with if the body is stored in parts
    /// (`StoredFlags.parts`), as long as `HTTP/1.1`. It is never sent.
    private static let partsVersion: StaticString = "PART/1.1"

    /// Whether a stored head is one of those.
    static func isOfParts(_ head: Span<UInt8>) -> Bool {
        head.count > 0 && head[0] == UInt8(ascii: "P")
    }

    /// Appends the length of a whole representation to the head of a part of it.
    public static func append(completeLength: UInt64, to out: inout [UInt8]) {
        out += [UInt8]("Content-Length: \(completeLength)\r\n".utf8)
    }

    /// A stored head without the trailers that follow its fields.
    public static func withoutTrailers(_ head: [UInt8]) -> [UInt8] {
        StoredLines.end(of: head.span).map { Array(head[..<$0]) } ?? head
    }

    /// Where the reason phrase begins: after `HTTP/1.1 200 `.
    @usableFromInline static let phraseStart = 13

    /// Whether a stored head begins as most do: `200 OK` and CRLF after the version.
    @inlinable @inline(__always)
    static func isUsual(_ head: Span<UInt8>) -> Bool {
        guard head.count >= usualBytes else { return false }
        return head.withUnsafeBytes {
            UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 9, as: UInt64.self))
                == 0x0A0D_4B4F_2030_3032
        }
    }

    @usableFromInline static let usualBytes = 17

    /// The reason phrase of a stored head; `nil` if it is known to be the standard one.
    @inlinable @inline(__always)
    static func phrase(in head: Span<UInt8>) -> ByteRange? {
        if isUsual(head) { return nil }
        let end = statusLineBytes(of: head) - 2
        return end >= phraseStart ? ByteRange(from: phraseStart, to: end) : nil
    }

    /// The length of a stored head's status line in bytes.
    @inlinable @inline(__always)
    static func statusLineBytes(of head: Span<UInt8>) -> Int {
        if isUsual(head) { return usualBytes }
        var index = phraseStart
        while index < head.count, head[index] != UInt8(ascii: "\n") { index &+= 1 }
        return min(index &+ 1, head.count)
    }

    /// Whether there is exactly one Date and it is valid.
    static func hasValidDate(
        _ fields: FieldSection, in bytes: Span<UInt8>, responseTime: Int64
    ) -> Bool {
        guard let date = fields.only(.date) else { return false }
        let value = bytes.extracting(date.value.indices)
        return HTTPDate.parse(value, now: responseTime) != nil
    }
}

extension StoredMetadata {
    /// The metadata of a stored head: computed right after storing, and again from the disk tier's
    /// row. The same bytes, times, options and query give the same metadata.
    ///
    /// - Parameters:
    ///   - storedHead: bytes made by `StoredHead`.
    ///   - times: the times that it was stored with.
    ///   - hasQuery: whether the key's URI has a query (`CacheKey.hasQuery`), for heuristics.
    ///   - options: the policy; changing it changes the heuristic lifetimes of stored responses.
    /// - Returns: `nil` if the bytes are not a stored head: a damaged row, which is to be dropped.
    public init?(
        storedHead head: Span<UInt8>, times: StoredTimes, hasQuery: Bool,
        options: borrowing PolicyOptions
    ) {
        var lines = StoredLines(head)
        guard head.count <= Int(Int32.max) else { return nil }
        var facts = ResponseFacts(status: lines.status, responseTime: times.responseTime)
        while let line = lines.next(in: head) {
            // Its names are in the Vary key; here only its presence matters.
            if case .vary = line.id {
                facts.present.insert(.vary)
            } else {
                facts.absorb(line.id, line.value, in: head)
            }
        }
        guard !lines.isDamaged, lines.trailers == nil || StoredLines.end(of: head) != nil else {
            return nil
        }
        let given = facts.directives
        if let route = options.box?.options {
            facts.target(TargetedDirectives.first(of: route.targetedFields, inStoredHead: head))
        }
        facts.settle(options)
        var marks = Self.withheld(in: head, by: facts.directives)
        marks.formUnion(
            StoredFlags(codingsOf: head, facts, given: given, options: options))
        if lines.trailers != nil { marks.insert(.hasTrailers) }
        if StoredHead.isOfParts(head) { marks.insert(.parts) }
        self.init(
            facts, marks,
            headBytes: UInt32(head.count), times: times, hasQuery: hasQuery,
            options: options, isWeak: EntityTag.isWeak(facts.entityTag, in: head))
    }

    /// The rules about fields of the head that are left out.
    private static func withheld(
        in head: Span<UInt8>, by directives: CacheDirectives
    ) -> StoredFlags {
        let named: CacheDirectives.Flags = [.noCacheFields, .privateFields]
        guard !directives.flags.isDisjoint(with: named) else { return [] }
        var flags: StoredFlags = []
        for (directive, flag) in [
            (CacheDirectives.Flags.noCacheFields, StoredFlags.withholdsUnvalidated),
            (.privateFields, .withholdsPrivate),
        ] where directives.flags.contains(directive) {
            let fields = QualifiedFields(storedHead: head, of: directive)
            if fields.occur(inStoredHead: head) { flags.insert(flag) }
        }
        return flags
    }

    private init(
        _ facts: borrowing ResponseFacts, _ marks: StoredFlags, headBytes: UInt32,
        times: StoredTimes, hasQuery: Bool,
        options: borrowing PolicyOptions, isWeak: Bool
    ) {
        let directives = facts.directives
        let (lifetime, source) = facts.lifetime(hasQuery: hasQuery, options: options)
        var flags = marks
        func set(_ flag: StoredFlags, if condition: Bool) { if condition { flags.insert(flag) } }
        set(.noCache, if: directives.flags.contains(.noCache))
        set(.neverStale, if: options.forbidsStale(directives))
        set(.sharedWithAuthorized, if: options.sharesWithAuthorized(directives, source))
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
