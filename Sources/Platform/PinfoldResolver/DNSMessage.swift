import HTTPCore

/// The outcome of one question (A or AAAA).
package enum FamilyOutcome: Sendable, Hashable {
    /// At least one address, in the answer's order, and the lowest TTL on the way to them.
    case addresses([IPAddress], ttlSeconds: Int64)
    /// The name does not exist, and for how long that is valid if the server said so (RFC 2308 §5).
    case noSuchName(ttlSeconds: Int64?)
    /// The name exists without such records, and for how long that is valid if the server said so.
    case noData(ttlSeconds: Int64?)
    /// No answer.
    case failed(ResolveError)
}

/// A DNS response (RFC 1035 §4). Every offset is checked, pointers must go backwards, and the walk
/// over records and aliases is bounded: the bytes are not trusted.
package struct DNSMessage {
    /// The maximum number of records; a message with more in its answer and authority sections is
    /// invalid.
    static let maximumRecords = 512
    /// The maximum number of aliases followed from the name to its addresses.
    static let maximumAliases = 16
    /// The maximum number of addresses taken from one answer; the rest are ignored.
    package static let maximumAddresses = 64

    /// The maximum size of a name in its encoded form (RFC 1035 §3.1), wherever its labels are.
    private static let maximumNameBytes = 255
    private static let headerBytes = 12
    private static let classInternet: UInt16 = 1
    private static let typeAlias: UInt16 = 5
    private static let typeStartOfAuthority: UInt16 = 6

    /// The type in a question for this family: A or AAAA.
    package static func type(of family: IPAddress.Family) -> UInt16 {
        switch family {
        case .v4: 1
        case .v6: 28
        }
    }

    // A copy of the message: array indexing is bounds-checked in every build.
    private let bytes: [UInt8]

    /// A response as received, without TCP's length prefix.
    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    /// The message was rejected; the caller only sees `badResponse`.
    private struct MalformedError: Error {}

    private struct Record {
        var owner: Int
        var type: UInt16
        var ttlSeconds: Int64
        var data: Int
        var dataCount: Int
    }

    /// The outcome for a question for the name's addresses of this family.
    package func outcome(name: DomainName, family: IPAddress.Family) -> FamilyOutcome {
        (try? read(name: name, family: family)) ?? .failed(.badResponse)
    }

    private func read(
        name: DomainName, family: IPAddress.Family
    ) throws(MalformedError) -> FamilyOutcome {
        let flags = try integer16(at: 2)
        let isResponse = flags & 0x8000 != 0
        let isStandardQuery = flags & 0x7800 == 0
        let isTruncated = flags & 0x0200 != 0
        guard isResponse, isStandardQuery else { throw MalformedError() }
        let questionEnd = try question(name: name, family: family)
        switch flags & 0xf {
        case 0: break
        case 2: return .failed(.serverFailure)
        case 3:
            let records = try sections(from: questionEnd)
            return .noSuchName(ttlSeconds: negativeTTL(records.authority))
        case 5: return .failed(.refused)
        default: return .failed(.serverFailure)
        }
        guard !isTruncated else { throw MalformedError() }
        let records = try sections(from: questionEnd)
        var (addresses, ttl): ([IPAddress], Int64) = ([], .max)
        var target = DNSMessage.headerBytes
        for _ in 0...DNSMessage.maximumAliases {
            for record in records.answer where try isSame(record.owner, target) {
                guard record.type == DNSMessage.type(of: family) else { continue }
                let address = try address(of: record, family: family)
                ttl = min(ttl, record.ttlSeconds)
                guard addresses.count < DNSMessage.maximumAddresses,
                    !addresses.contains(address)
                else { continue }
                addresses.append(address)
            }
            if !addresses.isEmpty { return .addresses(addresses, ttlSeconds: ttl) }
            guard let alias = try alias(of: target, in: records.answer) else {
                return .noData(ttlSeconds: negativeTTL(records.authority))
            }
            ttl = min(ttl, alias.ttlSeconds)
            target = alias.data
        }
        throw MalformedError()
    }

    /// Checks that the single question is ours, and returns where it ends.
    private func question(
        name: DomainName, family: IPAddress.Family
    ) throws(MalformedError) -> Int {
        guard try integer16(at: 4) == 1 else { throw MalformedError() }
        var position = DNSMessage.headerBytes
        for label in name.text.utf8.split(separator: UInt8(ascii: ".")) {
            guard Int(try integer8(at: position)) == label.count else { throw MalformedError() }
            position += 1
            for expected in label {
                guard ASCII.lowercased(try integer8(at: position)) == expected else {
                    throw MalformedError()
                }
                position += 1
            }
        }
        guard try integer8(at: position) == 0,
            try integer16(at: position + 1) == DNSMessage.type(of: family),
            try integer16(at: position + 3) == DNSMessage.classInternet
        else { throw MalformedError() }
        return position + 5
    }

    /// The records of the answer and authority sections; the additional section is not needed.
    private func sections(
        from start: Int
    ) throws(MalformedError) -> (answer: [Record], authority: [Record]) {
        let answerCount = Int(try integer16(at: 6))
        let count = answerCount + Int(try integer16(at: 8))
        guard count <= DNSMessage.maximumRecords else { throw MalformedError() }
        var (answer, authority): ([Record], [Record]) = ([], [])
        var position = start
        for index in 0..<count {
            let owner = position
            position = try skipName(at: position)
            let type = try integer16(at: position)
            let recordClass = try integer16(at: position + 2)
            var ttl = Int64(try integer16(at: position + 4)) << 16
            ttl |= Int64(try integer16(at: position + 6))
            // RFC 2181 §8: a TTL with the top bit set is zero.
            if ttl > Int64(Int32.max) { ttl = 0 }
            let dataCount = Int(try integer16(at: position + 8))
            let data = position + 10
            position = data + dataCount
            guard position <= bytes.count else { throw MalformedError() }
            guard recordClass == DNSMessage.classInternet else { continue }
            let record = Record(
                owner: owner, type: type, ttlSeconds: ttl, data: data, dataCount: dataCount)
            if index < answerCount { answer.append(record) } else { authority.append(record) }
        }
        return (answer, authority)
    }

    private func alias(of target: Int, in records: [Record]) throws(MalformedError) -> Record? {
        for record in records where record.type == DNSMessage.typeAlias {
            if try isSame(record.owner, target) { return record }
        }
        return nil
    }

    private func address(
        of record: Record, family: IPAddress.Family
    ) throws(MalformedError) -> IPAddress {
        var words: [UInt64] = []
        for offset in stride(from: 0, to: record.dataCount, by: 2) where offset < 16 {
            words.append(UInt64(try integer16(at: record.data + offset)))
        }
        switch (family, record.dataCount) {
        case (.v4, 4):
            return .v4(UInt32(words[0] << 16 | words[1]))
        case (.v6, 16):
            return .v6(
                words[0] << 48 | words[1] << 32 | words[2] << 16 | words[3],
                words[4] << 48 | words[5] << 32 | words[6] << 16 | words[7])
        case (.v4, _), (.v6, _):
            throw MalformedError()
        }
    }

    /// The lower of the SOA record's own TTL and its MINIMUM (RFC 2308 §5), or `nil` without a
    /// readable SOA: a negative answer is valid without one.
    private func negativeTTL(_ authority: [Record]) -> Int64? {
        guard let record = authority.first(where: { $0.type == DNSMessage.typeStartOfAuthority })
        else { return nil }
        guard let primary = try? skipName(at: record.data),
            let fields = try? skipName(at: primary), fields + 20 == record.data + record.dataCount,
            let high = try? integer16(at: fields + 16), let low = try? integer16(at: fields + 18)
        else { return nil }
        return min(record.ttlSeconds, Int64(high) << 16 | Int64(low))
    }

    // MARK: Names and numbers

    /// Where the name that starts here ends in the record (a pointer ends it there).
    private func skipName(at start: Int) throws(MalformedError) -> Int {
        var position = start
        while true {
            let count = try integer8(at: position)
            switch count {
            case 0: return position + 1
            case 0xc0...0xff: return position + 2
            case 1...63: position += 1 + Int(count)
            default: throw MalformedError()
            }
            guard position - start <= DNSMessage.maximumNameBytes else { throw MalformedError() }
        }
    }

    /// Whether two names in the message are equal, ignoring ASCII case.
    private func isSame(_ first: Int, _ second: Int) throws(MalformedError) -> Bool {
        guard first != second else { return true }
        var (left, right) = (first, second)
        // The zero at the end of a name is one of its bytes.
        var size = 1
        while true {
            left = try label(at: left)
            right = try label(at: right)
            let count = bytes[left]
            guard count == bytes[right] else { return false }
            if count == 0 { return true }
            size += 1 + Int(count)
            guard size <= DNSMessage.maximumNameBytes else { throw MalformedError() }
            for offset in 1...Int(count) {
                let (a, b) = (try integer8(at: left + offset), try integer8(at: right + offset))
                guard ASCII.lowercased(a) == ASCII.lowercased(b) else { return false }
            }
            left += 1 + Int(count)
            right += 1 + Int(count)
        }
    }

    /// The position of the label that starts here, after following pointers. Each must point to
    /// before itself, so that this terminates.
    private func label(at start: Int) throws(MalformedError) -> Int {
        var position = start
        while true {
            let count = try integer8(at: position)
            switch count {
            case 0...63: return position
            case 0xc0...0xff:
                let target = Int(try integer16(at: position) & 0x3fff)
                guard target < position, target >= DNSMessage.headerBytes else {
                    throw MalformedError()
                }
                position = target
            default: throw MalformedError()
            }
        }
    }

    private func integer8(at position: Int) throws(MalformedError) -> UInt8 {
        guard position < bytes.count else { throw MalformedError() }
        return bytes[position]
    }

    private func integer16(at position: Int) throws(MalformedError) -> UInt16 {
        guard position + 1 < bytes.count else { throw MalformedError() }
        return UInt16(bytes[position]) << 8 | UInt16(bytes[position + 1])
    }
}
