import HTTPCore

/// Why a text is not a host pattern.
package enum HostPatternError: Error, Hashable, Sendable, CaseIterable {
    case empty
    case url
    case port
    case wildcardPosition
    case wildcardAlone
    case wildcardOverAddress
    case address
    case emptyLabel
    case longLabel
    case longName
    case character
    case notASCII

    /// What is wrong and what was expected, for a configuration's error line.
    package var problem: String {
        switch self {
        case .empty: "the pattern is empty; expected a host name"
        case .url: "it is a URL; write its host alone, as in 'example.com' or 'example.com:8443'"
        case .port: "the port is not a number from 1 to 65535"
        case .wildcardPosition:
            "a wildcard is allowed only at the start, as '*.' (one label) or '**.' (any depth)"
        case .wildcardAlone: "a wildcard needs a domain after it, as in '*.example.com'"
        case .wildcardOverAddress: "an address cannot have a wildcard"
        case .address: "not an IP address; IPv6 is written '::1', or '[::1]:443' with a port"
        case .emptyLabel: "two dots in a row, or a dot at the start"
        case .longLabel: "a label is longer than \(HostPattern.labelBytes) bytes"
        case .longName: "the name is longer than \(HostPattern.nameBytes) bytes"
        case .character: "a host name may contain only letters, digits, '-', '_' and '.'"
        case .notASCII: "write an internationalized name in its ASCII form, 'xn--…'"
        }
    }
}

/// The hosts that a configuration entry applies to: `api.example.com` exactly, `*.example.com` with
/// one more label, or `**.example.com` at any depth, including the domain itself; each optionally
/// with a `:port`; or all of them (``everything``). Case and a trailing dot are ignored, in
/// patterns and hosts alike. An address matches only itself, in whatever notation.
package struct HostPattern: Hashable, Sendable, CustomStringConvertible {
    /// The maximum length of a label in bytes (RFC 1035 §2.3.4).
    package static let labelBytes = 63
    /// The maximum length of a name in text form, in bytes, without a trailing dot.
    package static let nameBytes = 253

    private enum Shape: Hashable, Sendable {
        /// The whole name.
        case exact
        /// One label followed by the name.
        case oneLabel
        /// The name itself, or any number of labels followed by the name.
        case anyDepth
        /// Never an IPv4-mapped address.
        case address(IPAddress)
        /// All names and addresses.
        case everything
    }

    /// All hosts, at every port: `**`, which only ``init(_:)`` does not read, because it makes
    /// sense in few places.
    package static let everything = HostPattern(everything: ())

    private init(everything: Void) {
        shape = .everything
        name = []
    }

    private var shape: Shape
    /// In lower case, without wildcard, brackets, port and trailing dot.
    private let name: [UInt8]
    /// The only port that matches; `nil` if every port does.
    package private(set) var port: UInt16?

    /// The only host that can match, in lower case, an address without brackets; `nil` for
    /// wildcards.
    package var exactName: String? {
        switch shape {
        case .exact, .address: String(decoding: name, as: UTF8.self)
        case .oneLabel, .anyDepth, .everything: nil
        }
    }

    /// The hosts that a pattern matches, regardless of its port; an address is its normalized text.
    enum MatchedHosts {
        case exact(String)
        case oneLabel(String)
        case anyDepth(String)
        case everything
    }

    /// The hosts that the pattern matches.
    var reach: MatchedHosts {
        let text = String(decoding: name, as: UTF8.self)
        switch shape {
        case .exact: return .exact(text)
        case .oneLabel: return .oneLabel(text)
        case .anyDepth: return .anyDepth(text)
        // In brackets, so that it cannot equal a name: an address neither covers names nor is
        // covered by them.
        case .address(let address): return .exact("[\(address)]")
        case .everything: return .everything
        }
    }

    /// The same hosts, at every port.
    package var atEveryPort: HostPattern {
        var pattern = self
        pattern.port = nil
        return pattern
    }

    /// Parses a pattern; surrounding white space is not allowed.
    package init(_ text: String) throws(HostPatternError) {
        guard !text.isEmpty else { throw .empty }
        var bytes = Array(text.utf8)
        guard bytes.allSatisfy({ $0 < 0x80 }) else { throw .notASCII }
        guard text.firstRange(of: "://") == nil else { throw .url }
        port = try HostPattern.takePort(&bytes)
        if let address = IPAddress(literal: bytes.span) {
            shape = .address(address.unmapped)
            name = bytes
            return
        }
        guard !bytes.contains(where: { ":[]".utf8.contains($0) }) else { throw .address }
        var shape = Shape.exact
        let star = UInt8(ascii: "*")
        let wildcard = bytes.prefix { $0 == star }.count
        if wildcard > 0 {
            guard bytes.count > wildcard + 1 else { throw .wildcardAlone }
            guard wildcard <= 2, bytes[wildcard] == UInt8(ascii: ".") else {
                throw .wildcardPosition
            }
            bytes.removeFirst(wildcard + 1)
            shape = wildcard == 1 ? .oneLabel : .anyDepth
        }
        guard !bytes.contains(star) else { throw .wildcardPosition }
        if bytes.last == UInt8(ascii: ".") { bytes.removeLast() }
        try HostPattern.check(bytes)
        // Resolvers treat names that end in a number as addresses (WHATWG URL, "ends in a number").
        if let last = bytes.split(separator: UInt8(ascii: ".")).last,
            last.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
        {
            throw shape == .exact ? .address : .wildcardOverAddress
        }
        self.shape = shape
        name = bytes.map(ASCII.lowercased)
    }

    /// Removes `:port` from the end: after `]`, or after the only colon.
    private static func takePort(_ bytes: inout [UInt8]) throws(HostPatternError) -> UInt16? {
        let colon = UInt8(ascii: ":")
        guard let last = bytes.lastIndex(of: colon) else { return nil }
        let bracketed = last > 0 && bytes[last - 1] == UInt8(ascii: "]")
        guard bracketed || bytes.firstIndex(of: colon) == last else { return nil }
        let digits = bytes[(last + 1)...]
        guard !digits.isEmpty,
            digits.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
            let port = UInt16(String(decoding: digits, as: UTF8.self)), port > 0
        else { throw .port }
        bytes.removeSubrange(last...)
        guard !bytes.isEmpty else { throw .empty }
        return port
    }

    private static func check(_ name: [UInt8]) throws(HostPatternError) {
        guard name.count <= nameBytes else { throw .longName }
        var label = 0
        for byte in name + [UInt8(ascii: ".")] {
            if byte == UInt8(ascii: ".") {
                guard label > 0 else { throw .emptyLabel }
                label = 0
                continue
            }
            guard HostNameByte.isAllowed(byte) else { throw .character }
            label += 1
            guard label <= labelBytes else { throw .longLabel }
        }
    }

    /// Whether the pattern matches a host. Allocates only to parse an IPv6 literal.
    ///
    /// - Parameters:
    ///   - host: the bytes of a name, of an IPv4 address, or of an IPv6 address with or without
    /// brackets, in any case, with or without a trailing dot; without the port.
    ///   - port: the port to connect to; the scheme's default if none was given.
    package func matches(host: Span<UInt8>, port: UInt16) -> Bool {
        if let only = self.port, only != port { return false }
        var count = host.count
        if count > 0, host[count - 1] == UInt8(ascii: ".") { count -= 1 }
        switch shape {
        case .exact:
            return count == name.count && endsInName(host, count)
        case .oneLabel:
            let label = count - name.count - 1
            guard label > 0, endsInName(host, count), host[label] == UInt8(ascii: ".") else {
                return false
            }
            for index in 0..<label where host[index] == UInt8(ascii: ".") {
                return false
            }
            return true
        case .anyDepth:
            if count == name.count { return endsInName(host, count) }
            let prefix = count - name.count - 1
            return prefix > 0 && endsInName(host, count) && host[prefix] == UInt8(ascii: ".")
        case .address(let address):
            return IPAddress(literal: host)?.unmapped == address
        case .everything: return true
        }
    }

    /// The same for a host given as a string.
    package func matches(host: String, port: UInt16) -> Bool {
        let bytes = Array(host.utf8)
        return matches(host: bytes.span, port: port)
    }

    /// The pattern for the hosts that both patterns match; `nil` if there are none.
    package func intersection(_ other: HostPattern) -> HostPattern? {
        guard port == nil || other.port == nil || port == other.port,
            var common = commonHosts(other) ?? other.commonHosts(self)
        else { return nil }
        common.port = port ?? other.port
        return common
    }

    /// The hosts that both match, if it is one of some of the pairs; the others are mirrored.
    private func commonHosts(_ other: HostPattern) -> HostPattern? {
        switch (shape, other.shape) {
        case (_, .everything): self
        case (.address(let address), .address(let another)): address == another ? self : nil
        case (.exact, .exact), (.exact, .oneLabel), (.exact, .anyDepth):
            other.atEveryPort.matches(host: name.span, port: 0) ? self : nil
        case (.oneLabel, .oneLabel): name == other.name ? self : nil
        case (.oneLabel, .anyDepth):
            if isWithin(other.name) {
                self
            } else if other.isWithin(name), Self.labels(other.name) == Self.labels(name) + 1 {
                other.exactly
            } else {
                nil
            }
        case (.anyDepth, .anyDepth): isWithin(other.name) ? self : nil
        default: nil
        }
    }

    /// Whether its name is a domain, or a name under it.
    private func isWithin(_ domain: [UInt8]) -> Bool {
        name == domain
            || name.count > domain.count && name.suffix(domain.count).elementsEqual(domain)
                && name[name.count - domain.count - 1] == UInt8(ascii: ".")
    }

    private static func labels(_ name: [UInt8]) -> Int {
        name.count { $0 == UInt8(ascii: ".") } + 1
    }

    /// Its domain itself.
    private var exactly: HostPattern {
        var pattern = self
        pattern.shape = .exact
        return pattern
    }

    /// Whether the first `count` bytes of `host` end in the pattern's name; the caller ensures that
    /// there are enough of them.
    private func endsInName(_ host: Span<UInt8>, _ count: Int) -> Bool {
        host.extracting((count - name.count)..<count).equals(lowercase: name.span)
    }

    /// The pattern as written in a configuration, normalized.
    package var description: String {
        let text = String(decoding: name, as: UTF8.self)
        let suffix = port.map { ":\($0)" } ?? ""
        switch shape {
        case .exact: return text + suffix
        case .oneLabel: return "*." + text + suffix
        case .anyDepth: return "**." + text + suffix
        case .address:
            let bare = !text.contains(":") || text.hasPrefix("[") || port == nil
            return (bare ? text : "[\(text)]") + suffix
        case .everything: return "**"
        }
    }
}

/// Byte classes of host names.
enum HostNameByte {
    /// Letters, digits and hyphens (RFC 1123 §2.1), and the underscore, which occurs in real names.
    static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
