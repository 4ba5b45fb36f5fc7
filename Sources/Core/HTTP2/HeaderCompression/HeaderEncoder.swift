import HTTPCore

/// Encodes header blocks (RFC 7541): the context of one direction of a connection.
///
/// Fields are given as the lines of a head, in any letter case. What belongs to one connection is
/// left out (RFC 9113 §8.2.2). Credentials and cookies never enter the table, so that nobody who
/// shares a connection can guess them by the size of what is sent (RFC 7541 §7.1).
public struct HeaderEncoder: ~Copyable {
    var table = EncodingTable()
    /// The smallest table size that the peer has set since the last block, if it set any.
    private var smallestLimit: Int?
    /// The number of the field with the last `:authority`.
    var authority = 0

    /// An encoder of a connection on which nothing has been sent.
    public init() {}

    /// Notes the peer's SETTINGS_HEADER_TABLE_SIZE (RFC 9113 §6.5.2). Its next block says which
    /// size is used (RFC 7541 §4.2).
    public mutating func peerTableLimit(_ bytes: Int) {
        let limit = max(0, min(bytes, EncodingTable.defaultLimit))
        guard limit != table.limit || smallestLimit != nil else { return }
        smallestLimit = min(limit, smallestLimit ?? limit)
        table.setLimit(limit)
    }

    /// Empties the table and gives back its memory. The next block says so to the peer (RFC 7541
    /// §4.2).
    public mutating func forget() {
        guard table.count > 0 else { return }
        let limit = table.limit
        table = EncodingTable()
        table.setLimit(limit)
        authority = 0
        smallestLimit = 0
    }

    /// How much room a writer needs for lines of `count` bytes; for a request as much again for the
    /// method, authority, path and protocol together.
    ///
    /// A field without the Huffman code takes no more than its line, but for two bytes more where a
    /// name or value has 127 bytes or more, and one more where it has 16,510.
    public static func bound(_ count: Int) -> Int { count + count / 64 + 128 }

    /// Begins a block: the table sizes that the peer does not know yet.
    mutating func begin(_ place: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer {
        guard let smallest = smallestLimit else { return place }
        smallestLimit = nil
        var place = place
        if smallest < table.limit {
            place = PrefixInteger.write(smallest, mask: 0x1F, pattern: 0x20, to: place)
        }
        return PrefixInteger.write(table.limit, mask: 0x1F, pattern: 0x20, to: place)
    }

    /// Which fields are left out, beside those that belong to one connection.
    enum Section { case request, response, trailers }

    /// Encodes complete lines `name: value CRLF`; returns where they end.
    mutating func encode(
        _ lines: UnsafeRawBufferPointer, in section: Section, sensitive: SensitiveNames,
        to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        guard var next = lines.baseAddress else { return place }
        let end = next + lines.count
        var place = place
        var previous =
            section == .trailers ? EncodingTable.trailerStart : EncodingTable.headStart
        while next < end {
            if sensitive.isEmpty,
                let (number, count) = table.expected(after: previous, next, end - next)
            {
                place = PrefixInteger.write(
                    table.wireIndex(number), mask: 0x7F, pattern: 0x80, to: place)
                next += count
                previous = number
                continue
            }
            guard let line = FieldLine(next, end - next) else {
                assertionFailure("what is encoded is not lines")
                break
            }
            place = encode(line, in: section, sensitive, &previous, to: place)
            next += line.count
        }
        return place
    }

    /// Encodes a line that is not the expected one.
    @inline(never)
    private mutating func encode(
        _ line: FieldLine, in section: Section, _ sensitive: SensitiveNames,
        _ previous: inout Int, to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        let isSensitive = !sensitive.isEmpty && sensitive.mayContain(line.name)
        let hash = line.hash
        if !isSensitive, let number = table.find(line.start, line.count, hash: hash) {
            table.note(number, after: previous)
            previous = number
            return PrefixInteger.write(
                table.wireIndex(number), mask: 0x7F, pattern: 0x80, to: place)
        }
        let index = StaticNames.index(line.start, line.nameCount)
        if index == StaticNames.transferEncoding { return place }
        if index == StaticNames.host, section == .request { return place }
        if index == 0, line.belongsToConnection(in: section) { return place }
        if isSensitive || StaticNames.isSecret(index) {
            return encodeLiteral(line, index, mask: 0x0F, pattern: 0x10, to: place)
        }
        let nameHash = line.nameHash
        var name = index
        if index == 0, let number = table.findName(line.start, line.nameCount, hash: nameHash) {
            name = table.wireIndex(number)
        }
        let size = line.nameCount + line.valueCount + DecodingTable.entryOverhead
        guard line.count <= 0xFFFF, table.wants(size, hash: hash) else {
            return encodeLiteral(line, name, mask: 0x0F, pattern: 0, to: place)
        }
        let end = encodeLiteral(line, name, mask: 0x3F, pattern: 0x40, to: place)
        let number = table.add(
            line.start, line.count, nameCount: line.nameCount, size: size, hash: hash,
            nameHash: nameHash)
        table.note(number, after: previous)
        previous = number
        return end
    }

    /// Encodes a literal (RFC 7541 §6.2) whose name is at an index, or is written if that is 0.
    private func encodeLiteral(
        _ line: FieldLine, _ name: Int, mask: Int, pattern: UInt8,
        to place: UnsafeMutableRawPointer
    ) -> UnsafeMutableRawPointer {
        var place = PrefixInteger.write(name, mask: mask, pattern: pattern, to: place)
        if name == 0 {
            place = StringEncoder.write(
                line.start, count: line.nameCount, lowercases: true, to: place)
        }
        return StringEncoder.write(
            line.value, count: line.valueCount, lowercases: false, to: place)
    }
}
