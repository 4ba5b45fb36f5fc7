import HTTPCore

/// The fields that a response's qualified directives name (RFC 9111 §5.2.2.4, §5.2.2.7):
/// `private="a, b"`, which are for one client and not stored in a shared cache, and
/// `no-cache="c"`, which are not used again without validation.
///
///     argument = DQUOTE #field-name DQUOTE / field-name
///
/// A directive with an argument of any other form, with a field without which the response cannot
/// be used or understood, or with too many fields counts as the unqualified one, which forbids
/// more.
struct QualifiedFields: Sendable, Equatable {
    /// The maximum number of fields that the directives of a response may name, so that comparing
    /// them with its fields takes bounded time.
    static let maximumCount = 16

    /// The names in lower case.
    private var names: [[UInt8]] = []

    /// The fields without which a response must not be served: those that describe its content,
    /// and those that a cache needs to use it.
    private static let indispensable = FieldIDSet.hopByHop.union(
        FieldIDSet([
            .host, .trailer, .contentLength, .contentType, .contentEncoding, .contentRange, .etag,
            .lastModified, .date, .expires, .age, .cacheControl, .cdnCacheControl, .pragma, .vary,
            .via, .cacheStatus, .location,
        ]))

    /// How many fields an argument names; `nil` if it makes the directive count as unqualified.
    static func count(in argument: ByteRange, of bytes: Span<UInt8>) -> Int? {
        let value = bytes.extracting(argument.indices)
        var count = 0
        var list = ListMembers(value)
        while let member = list.next(in: value) {
            count += 1
            guard count <= maximumCount, isName(value.extracting(member)) else { return nil }
        }
        return count > 0 ? count : nil
    }

    private static func isName(_ member: Span<UInt8>) -> Bool {
        for index in member.indices where !ByteClass.isToken(member[index]) { return false }
        return !indispensable.contains(FieldID(lowercaseName: lowercase(member)))
    }

    private static func lowercase(_ name: Span<UInt8>) -> [UInt8] {
        name.indices.map { ASCII.lowercased(name[$0]) }
    }

    /// Adds the fields that one Cache-Control line names.
    /// - Parameter directives: `privateFields`, `noCacheFields`, or both.
    mutating func add(
        _ value: ByteRange, in bytes: Span<UInt8>, of directives: CacheDirectives.Flags
    ) {
        var scanner = DirectiveScanner(value)
        while let directive = scanner.next(in: bytes) {
            guard let argument = directive.argument, !directive.isMalformed,
                directives.contains(.privateFields)
                    && bytes.holds(lowercase: "private", at: directive.name)
                    || directives.contains(.noCacheFields)
                        && bytes.holds(lowercase: "no-cache", at: directive.name)
            else { continue }
            let list = bytes.extracting(argument.indices)
            var members = ListMembers(list)
            while names.count < Self.maximumCount, let member = members.next(in: list) {
                names.append(Self.lowercase(list.extracting(member)))
            }
        }
    }

    /// Removes all names but those of fields that set cookies.
    mutating func keepCookies() {
        names.removeAll { FieldID(lowercaseName: $0) != .setCookie }
    }

    mutating func formUnion(_ other: QualifiedFields) { names += other.names }

    /// These and others.
    func union(_ other: QualifiedFields?) -> QualifiedFields {
        var union = self
        if let other { union.formUnion(other) }
        return union
    }

    /// Those that set cookies.
    static let cookies = {
        var fields = QualifiedFields()
        fields.names = [Array("set-cookie".utf8), Array("set-cookie2".utf8)]
        return fields
    }()

    /// Whether no field is named.
    var isEmpty: Bool { names.isEmpty }

    /// Whether the field is named.
    func contains(_ name: ByteRange, in bytes: Span<UInt8>) -> Bool {
        let name = bytes.extracting(name.indices)
        return names.contains { name.equals(lowercase: $0.span) }
    }
}

extension QualifiedFields {
    /// The fields that directives of a received head name.
    init(
        _ fields: FieldSection, in bytes: Span<UInt8>, of directives: CacheDirectives.Flags
    ) {
        var lines = FieldValueIterator(.cacheControl)
        while let value = lines.next(in: fields) { add(value, in: bytes, of: directives) }
    }

    /// The fields that directives of a stored head name.
    init(storedHead: Span<UInt8>, of directives: CacheDirectives.Flags) {
        var lines = StoredLines(storedHead)
        while let line = lines.next(in: storedHead) {
            if line.id == .cacheControl { add(line.value, in: storedHead, of: directives) }
        }
    }

    /// The fields of a stored head that are left out where it was not validated; `nil` if there
    /// are none.
    init?(withheldBy flags: StoredFlags, in storedHead: Span<UInt8>) {
        guard flags.isWithholding else { return nil }
        var directives: CacheDirectives.Flags = []
        if flags.contains(.withholdsPrivate) { directives.insert(.privateFields) }
        if flags.contains(.withholdsUnvalidated) { directives.insert(.noCacheFields) }
        self.init(storedHead: storedHead, of: directives)
    }

    /// Whether a stored head has one of the fields.
    func occur(inStoredHead head: Span<UInt8>) -> Bool {
        var lines = StoredLines(head)
        while let line = lines.next(in: head) {
            if contains(line.name, in: head) { return true }
        }
        return false
    }

    /// A stored head without the fields.
    func removed(fromStoredHead head: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: head.count) {
            var writer = HeadWriter(UnsafeMutableRawBufferPointer($0))
            var lines = StoredLines(head.span)
            writer.append(lines.statusLine, of: head.span)
            while let line = lines.next(in: head.span) {
                if !contains(line.name, in: head.span) { writer.append(line.line, of: head.span) }
            }
            if lines.trailers != nil {
                let fields = writer.count
                writer.appendLineEnd()
                lines.readTrailers()
                while let line = lines.next(in: head.span) {
                    if contains(line.name, in: head.span) { continue }
                    writer.append(line.line, of: head.span)
                }
                // Without any there is no empty line.
                if writer.count == fields + 2 {
                    $1 = fields
                    return
                }
            }
            $1 = writer.count
        }
    }
}

extension CacheDirectives {
    /// The fields that are not stored. A cookie that must not be used again without validation is
    /// one of them: a 304 that validates the response brings the client's own.
    ///
    /// - Parameter named: returns the fields that the directives name.
    func unstoredFields(
        _ options: PolicyOptions, _ named: (Flags) -> QualifiedFields
    ) -> QualifiedFields? {
        guard options.isShared, !flags.isDisjoint(with: [.privateFields, .noCacheFields]) else {
            return nil
        }
        var fields = QualifiedFields()
        if flags.contains(.noCacheFields) {
            fields = named(.noCacheFields)
            fields.keepCookies()
        }
        if flags.contains(.privateFields) { fields.formUnion(named(.privateFields)) }
        return fields.isEmpty ? nil : fields
    }
}

extension HeadWriter {
    /// Appends the lines of a section, without the fields in `omitted` and `unstored` and those
    /// that Connection nominated.
    mutating func appendFields(
        _ fields: FieldSection, of bytes: Span<UInt8>, omitting omitted: FieldIDSet,
        _ unstored: QualifiedFields
    ) {
        for index in 0..<fields.endIndex {
            let field = fields[index]
            if omitted.contains(field.id) || field.isNominated { continue }
            if unstored.contains(field.name, in: bytes) { continue }
            append(fields.line(at: index), of: bytes)
        }
    }
}

extension FieldSection {
    /// The bytes of a field's line, with its CRLF.
    func line(at index: Int) -> ByteRange {
        let end = index + 1 < endIndex ? self[index + 1].name.start : self.end
        return ByteRange(from: Int(self[index].name.start), to: Int(end))
    }
}
