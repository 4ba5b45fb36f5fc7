import HTTPCore

/// The names of a hosts file (hosts(5)): an address, then its names, `#` to the end of the line.
struct HostsTable: Sendable, Equatable {
    /// The maximum number of bytes read; only whole lines within them count.
    static let maximumBytes = 4 << 20
    /// The maximum number of addresses kept for one name.
    static let maximumAddresses = 64

    private var addresses: [String: [IPAddress]] = [:]

    /// No names.
    init() {}

    /// Parses a file's bytes. Malformed lines are skipped, as every reader of this file does, and
    /// so are addresses with a zone and names that may not be looked up.
    init(_ bytes: [UInt8]) {
        var bytes = bytes[...]
        if bytes.count > HostsTable.maximumBytes {
            bytes = bytes.prefix(HostsTable.maximumBytes)
            let lastLine = bytes.lastIndex(of: UInt8(ascii: "\n")) ?? bytes.startIndex
            bytes = bytes[..<lastLine]
        }
        for line in bytes.split(whereSeparator: { $0 == UInt8(ascii: "\n") }) {
            let content = line.prefix { $0 != UInt8(ascii: "#") }
            let words = content.split { byte in
                byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
                    || byte == UInt8(ascii: "\r")
            }
            guard let first = words.first, let address = IPAddress(bytes: first.span) else {
                continue
            }
            for word in words.dropFirst() {
                guard let name = DomainName(String(decoding: word, as: UTF8.self)) else {
                    continue
                }
                add(address, to: name.text)
            }
        }
    }

    /// A name's addresses, IPv6 first, or `nil` if the file does not have the name.
    func addresses(of name: DomainName) -> [IPAddress]? {
        guard let all = addresses[name.text] else { return nil }
        return all.filter { $0.family == .v6 } + all.filter { $0.family == .v4 }
    }

    private mutating func add(_ address: IPAddress, to name: String) {
        var all = addresses[name] ?? []
        guard all.count < HostsTable.maximumAddresses, !all.contains(address) else { return }
        all.append(address)
        addresses[name] = all
    }
}
