import HTTPCore

/// Writes DNS messages for tests (RFC 1035 §4).
struct DNSWire {
    enum RecordType: UInt16 {
        case a = 1
        case ns = 2
        case cname = 5
        case soa = 6
        case txt = 16
        case aaaa = 28
    }

    struct Record: Sendable {
        /// The owner, or `nil` for a pointer to the question's name.
        var owner: String?
        var type: RecordType
        var ttl: UInt32
        var data: [UInt8]

        static func a(_ text: String, owner: String? = nil, ttl: UInt32 = 60) -> Record {
            guard case .v4(let value) = IPAddress(text) else { fatalError("not IPv4: \(text)") }
            return Record(owner: owner, type: .a, ttl: ttl, data: bytes(value))
        }

        static func aaaa(_ text: String, owner: String? = nil, ttl: UInt32 = 60) -> Record {
            guard case .v6(let high, let low) = IPAddress(text) else {
                fatalError("not IPv6: \(text)")
            }
            return Record(owner: owner, type: .aaaa, ttl: ttl, data: bytes(high) + bytes(low))
        }

        static func cname(_ target: String, owner: String? = nil, ttl: UInt32 = 60) -> Record {
            Record(owner: owner, type: .cname, ttl: ttl, data: name(target))
        }

        static func soa(owner: String? = nil, ttl: UInt32, minimum: UInt32) -> Record {
            let numbers = [UInt32(1), 2, 3, 4, minimum].flatMap { bytes($0) }
            return Record(
                owner: owner, type: .soa, ttl: ttl,
                data: name("ns.example") + name("admin.example") + numbers)
        }
    }

    static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }

    static func name(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = []
        for label in text.utf8.split(separator: UInt8(ascii: ".")) {
            bytes.append(UInt8(label.count))
            bytes += label
        }
        return bytes + [0]
    }

    static func question(_ name: String, _ type: RecordType) -> [UInt8] {
        self.name(name) + bytes(type.rawValue) + bytes(UInt16(1))
    }

    /// A response; `question` is the question section as received.
    static func response(
        id: UInt16 = 7, question: [UInt8], code: UInt16 = 0, truncated: Bool = false,
        answer: [Record] = [], authority: [Record] = []
    ) -> [UInt8] {
        var message = bytes(id) + bytes(UInt16(0x8180) | code | (truncated ? 0x200 : 0))
        message += bytes(UInt16(1)) + bytes(UInt16(answer.count))
        message += bytes(UInt16(authority.count)) + bytes(UInt16(0))
        message += question
        for record in answer + authority {
            message += record.owner.map { name($0) } ?? [0xc0, 12]
            message += bytes(record.type.rawValue) + bytes(UInt16(1)) + bytes(record.ttl)
            message += bytes(UInt16(record.data.count)) + record.data
        }
        return message
    }
}
