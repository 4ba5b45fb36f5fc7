import HTTPCore

/// The secondary cache key (RFC 9111 §4.1): the names that a response's Vary nominates, with their
/// normalized values in the request that it answered.
///
/// One sequence of bytes, in memory and in the database: a version byte, then for each name, once
/// and in alphabetical order, its length (1 byte), its bytes in lower case, 1 or 0 for present or
/// absent, and if present the value's length (2 bytes, high byte first) and bytes; for
/// Authorization the value's SHA-256 instead. In that of the response to a QUERY, the first member
/// is the request's content (`of(content:)`). Before the names may be a member that says which
/// values are compared by their meaning (`VaryKey+Meanings`). Empty if the response has no Vary: it
/// then matches every request.
public struct VaryKey: Sendable, Hashable {
    /// The serialized form.
    public let bytes: [UInt8]

    /// The key of a response without Vary.
    public static let none = VaryKey(unchecked: [])

    /// The first byte of a serialized form that is not empty.
    static let version: UInt8 = 1

    /// The maximum length of a nominated name in bytes.
    public static let maximumNameBytes = 255

    init(unchecked bytes: [UInt8]) { self.bytes = bytes }

    /// Creates a key from its serialized form; `nil` if the bytes are not one.
    public init?(bytes: [UInt8]) {
        guard Self.isWellFormed(bytes) else { return nil }
        self.bytes = bytes
    }

    /// Whether every request matches.
    @inlinable public var isEmpty: Bool { bytes.isEmpty }

    /// Whether every nominated field has the same normalized value in this request as in the one
    /// that the stored response answered; a field that was absent there must be absent here.
    ///
    /// If several stored responses match, the one with the most recent Date is to be used (RFC 9111
    /// §4.1). Does not allocate, unless Authorization is nominated.
    public func matches(_ request: borrowing RequestHead, in head: Span<UInt8>) -> Bool {
        bytes.isEmpty || matchesNominated(request.fields, in: head)
    }

    func matchesNominated(_ fields: FieldSection, in head: Span<UInt8>) -> Bool {
        let key = bytes.span
        var position = 1
        while position < key.count {
            let nameEnd = position + 1 + Int(key[position])
            let name = key.extracting(position + 1..<nameEnd)
            let isPresent = key[nameEnd] == 1
            position = nameEnd + 1
            if Self.isForTheProxy(name) {
                guard !isPresent else { return false }
                continue
            }
            var value = NormalizedValue(name: name, fields: fields, in: head)
            guard value.isPresent == isPresent else {
                return Self.isMeanings(name) && matchesMeanings(fields, in: head)
            }
            guard isPresent else { continue }
            let count = Int(key[position]) << 8 | Int(key[position + 1])
            position += 2
            let stored = key.extracting(position..<position + count)
            position += count
            if Self.isSecret(name) {
                var bytes: [UInt8] = []
                while let byte = value.next(name: name, fields: fields, in: head) {
                    bytes.append(byte)
                }
                guard let digest = CredentialDigest.of(bytes.span), digest.count == stored.count,
                    digest.indices.allSatisfy({ digest[$0] == stored[$0] })
                else { return false }
                continue
            }
            if value.isPlainly(stored, in: head) { continue }
            if value.isUnordered {
                let bytes = value.bytes(
                    name: name, fields: fields, in: head, by: [], upTo: stored.count)
                guard bytes.span.hasSameBytes(as: stored) else { return false }
                continue
            }
            for index in stored.indices {
                guard value.next(name: name, fields: fields, in: head) == stored[index] else {
                    return false
                }
            }
            guard value.next(name: name, fields: fields, in: head) == nil else { return false }
        }
        return true
    }

    private static func isWellFormed(_ bytes: [UInt8]) -> Bool {
        guard let first = bytes.first else { return true }
        guard first == version, bytes.count > 1 else { return false }
        var position = 1
        while position < bytes.count {
            let nameEnd = position + 1 + Int(bytes[position])
            guard bytes[position] > 0, nameEnd < bytes.count else { return false }
            switch bytes[nameEnd] {
            case 0: position = nameEnd + 1
            case 1:
                guard nameEnd + 2 < bytes.count else { return false }
                position = nameEnd + 3 + (Int(bytes[nameEnd + 1]) << 8 | Int(bytes[nameEnd + 2]))
            default: return false
            }
        }
        return position == bytes.count
    }
}

/// The names that a response's Vary lines nominate.
struct VaryNames {
    /// Their ranges in the response's bytes, each name once, in the order found.
    private(set) var names: [ByteRange] = []
    /// Whether a line contains `*`, or is not a list of names: no request can be known to match.
    private(set) var isAny = false

    /// Adds the members of one Vary line.
    mutating func add(_ value: ByteRange, in bytes: Span<UInt8>) {
        var position = Int(value.start)
        let end = Int(value.end)
        while position < end {
            let byte = bytes[position]
            if ASCII.isWhitespace(byte) || byte == UInt8(ascii: ",") {
                position += 1
                continue
            }
            let start = position
            while position < end, ByteClass.isToken(bytes[position]) { position += 1 }
            let name = ByteRange(from: start, to: position)
            while position < end, ASCII.isWhitespace(bytes[position]) { position += 1 }
            let isMember = position == end || bytes[position] == UInt8(ascii: ",")
            guard isMember, !name.isEmpty, name.count <= VaryKey.maximumNameBytes,
                !bytes.holds("*", at: name)
            else {
                isAny = true
                return
            }
            let isNew = !names.contains { Self.order($0, name, in: bytes) == 0 }
            if isNew { names.append(name) }
        }
    }

    /// Below 0, 0 or above 0 if the first name precedes, equals or follows the second, ignoring
    /// case.
    private static func order(
        _ left: ByteRange, _ right: ByteRange, in bytes: Span<UInt8>
    ) -> Int {
        for offset in 0..<Int(min(left.count, right.count)) {
            let difference =
                Int(ASCII.lowercased(bytes[Int(left.start) + offset]))
                - Int(ASCII.lowercased(bytes[Int(right.start) + offset]))
            if difference != 0 { return difference }
        }
        return Int(left.count) - Int(right.count)
    }

    /// The key of a response that nominates these names, made from the request that it answers.
    ///
    /// - Parameters:
    ///   - bytes: the response's bytes, to which the names' ranges refer.
    ///   - request: the request.
    ///   - head: its bytes.
    ///   - options: the limits.
    func key(
        in bytes: Span<UInt8>, for request: borrowing RequestHead, in head: Span<UInt8>,
        options: PolicyOptions
    ) throws(NotStoredReason) -> VaryKey {
        if isAny { throw .varyAny }
        if names.isEmpty, options.nominatedFields.isEmpty { return .none }
        guard names.count <= options.maximumVaryNames else { throw .varyNames }
        var nominated = names.map { range in
            range.indices.map { ASCII.lowercased(bytes[$0]) }
        }
        var meanings: FieldMeanings = []
        if let route = options.box?.options {
            nominated.removeAll { route.ignoredFields.contains($0) }
            guard !nominated.contains(where: { route.gatewayFields.contains($0) }) else {
                throw .varyAny
            }
            meanings = route.meanings
        }
        for name in options.nominatedFields where !nominated.contains(name) {
            nominated.append(name)
        }
        guard !nominated.isEmpty else { return .none }
        nominated.sort { $0.lexicographicallyPrecedes($1) }
        if !nominated.contains(where: { meanings.contains($0.span) }) { meanings = [] }
        var key: [UInt8] = []
        key.reserveCapacity(64)
        key.append(VaryKey.version)
        VaryKey.append(meanings, to: &key)
        for name in nominated {
            key.append(UInt8(clamping: name.count))
            key += name
            try VaryKey.append(valueOf: name, for: request, in: head, by: meanings, to: &key)
        }
        guard key.count <= options.maximumVaryKeyBytes else { throw .varyValues }
        return VaryKey(unchecked: key)
    }
}
