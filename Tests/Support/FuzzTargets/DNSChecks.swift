import HTTPCore
import PinfoldResolver

extension FuzzTarget {
    /// The first byte selects the question; the answer follows. Addresses come from it, at most as
    /// many as are taken, and are found again in an answer that has nothing else.
    func checkDNSMessage(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        guard let selector = bytes.first, let name = DomainName("www.example.com") else {
            return false
        }
        let family: IPAddress.Family = selector & 1 == 0 ? .v4 : .v6
        let message = Array(bytes.dropFirst())
        let outcome = DNSMessage(message).outcome(name: name, family: family)
        switch outcome {
        case .failed: return false
        case .noSuchName(let seconds), .noData(let seconds):
            guard (0...Int64(UInt32.max)).contains(seconds ?? 0) else {
                throw FuzzCheckError("negative for \(seconds ?? 0) s")
            }
        case .addresses(let addresses, let seconds):
            guard (1...DNSMessage.maximumAddresses).contains(addresses.count),
                Set(addresses).count == addresses.count,
                (0...Int64(Int32.max)).contains(seconds),
                addresses.allSatisfy({
                    $0.family == family && message.contains(part: $0.networkBytes)
                })
            else { throw FuzzCheckError("\(outcome) was read") }
            let again = DNSMessage(Self.answer(name, family, addresses, seconds))
                .outcome(name: name, family: family)
            guard again == outcome else { throw FuzzCheckError("\(outcome), then \(again)") }
        }
        return true
    }

    /// A response in which every record belongs to the question's name (RFC 1035 §4).
    private static func answer(
        _ name: DomainName, _ family: IPAddress.Family, _ addresses: [IPAddress], _ seconds: Int64
    ) -> [UInt8] {
        let kind = [0, UInt8(DNSMessage.type(of: family)), 0, 1]
        var message: [UInt8] = [0, 7, 0x81, 0x80, 0, 1, 0, UInt8(addresses.count), 0, 0, 0, 0]
        for label in name.text.utf8.split(separator: UInt8(ascii: ".")) {
            message.append(UInt8(label.count))
            message += label
        }
        message += [0] + kind
        for address in addresses {
            let data = address.networkBytes
            message += [0xC0, 12] + kind
            message += TLSBytes.short(Int(seconds >> 16)) + TLSBytes.short(Int(seconds & 0xFFFF))
            message += [0, UInt8(data.count)] + data
        }
        return message
    }
}

extension [UInt8] {
    /// Whether other bytes are somewhere among these, one after the other.
    func contains(part: [UInt8]) -> Bool {
        indices.contains { self[$0...].starts(with: part) }
    }
}
