import HTTPCore

/// The hosts that are reached without a proxy: what `no_proxy` lists.
///
/// Between commas or spaces:
/// - a name, which is the host's own and that of its domain: `example.com`, `.example.com` and
///   `*.example.com` are all for `example.com` and `api.example.com`, not for `badexample.com`;
/// - an address, or a network: `127.0.0.1`, `::1`, `10.0.0.0/8`, `fd00::/8`. Names are not looked
///   up for it;
/// - `*`, for all;
/// - each of them with a port, for that port only: `example.com:8080`, `.example.com:443`,
///   `[::1]:443`, `10.0.0.0/8:80`, `*:8080`. An address of IPv6 is in brackets then.
public struct ProxyBypass: Sendable, Hashable {
    /// Elements of a list.
    public static let maximumElements = 4096

    private enum Host: Sendable, Hashable {
        case every
        /// In lower case, without dots around it.
        case domain(String)
        case network(IPNetwork)
    }

    private struct Element: Sendable, Hashable {
        let host: Host
        let port: UInt16?
    }

    private let elements: [Element]

    /// No host.
    public init() { elements = [] }

    /// - Parameter list: See ``ProxyBypass``.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidProxy`` for an element that is
    ///   none of these.
    public init(_ list: String) throws(ClientError) {
        var elements: [Element] = []
        for text in Self.split(list) {
            guard let element = Self.element(text) else {
                throw ClientError(
                    .invalidProxy,
                    "\(text) in the list of hosts without a proxy: expected a name, an address or "
                        + "a network, with or without a port")
            }
            elements.append(element)
        }
        guard elements.count <= Self.maximumElements else {
            throw ClientError(
                .invalidProxy,
                "more than \(Self.maximumElements) hosts without a proxy are listed")
        }
        self.elements = elements
    }

    /// The environment's list, of which other programs may understand more: what is not understood
    /// here is for no host.
    init(lenient list: String) {
        elements = Self.split(list).prefix(Self.maximumElements).compactMap { Self.element($0) }
    }

    /// Whether a host is reached without a proxy.
    ///
    /// - Parameter host: In any case, an address with or without brackets.
    func contains(host: String, port: UInt16) -> Bool {
        guard !elements.isEmpty else { return false }
        let host = Self.bare(host.lowercasedASCII[...])
        let address = IPAddress(host)
        return elements.contains { element in
            guard element.port ?? port == port else { return false }
            switch element.host {
            case .every: return true
            case .network(let network): return address.map { network.contains($0) } ?? false
            case .domain(let domain):
                return address == nil && (host == domain || host.hasSuffix(".\(domain)"))
            }
        }
    }

    private static func split(_ list: String) -> [Substring] {
        list.split { $0 == "," || $0.isWhitespace }
    }

    private static func element(_ text: Substring) -> Element? {
        if let host = host(text) { return Element(host: host, port: nil) }
        guard let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...]),
            let host = host(text[..<colon])
        else { return nil }
        // Whose last group the port would be is not guessed.
        if case .network = host, text[..<colon].contains(":"), !text.hasPrefix("[") { return nil }
        return Element(host: host, port: port)
    }

    /// Nil for what is neither a name nor an address nor a network.
    private static func host(_ text: Substring) -> Host? {
        if text == "*" { return .every }
        if let network = try? IPNetwork(parsing: bare(text)) { return .network(network) }
        // Bits behind the prefix are set: other programs do not mind.
        if let slash = text.firstIndex(of: "/"), let address = IPAddress(bare(text[..<slash])),
            let length = Int(text[text.index(after: slash)...]),
            let network = IPNetwork(masking: address, prefixLength: length)
        {
            return .network(network)
        }
        var name = text
        if name.hasPrefix("*.") { name = name.dropFirst(2) }
        if name.hasPrefix(".") { name = name.dropFirst() }
        let domain = bare(name).lowercasedASCII
        guard !domain.isEmpty, !domain.contains(where: { "/:*[]@".contains($0) }) else {
            return nil
        }
        return .domain(domain)
    }

    /// Without brackets, and without the dot that ends a name.
    private static func bare(_ host: Substring) -> String {
        if host.hasPrefix("["), host.hasSuffix("]") { return String(host.dropFirst().dropLast()) }
        return String(host.hasSuffix(".") ? host.dropLast() : host)
    }
}
