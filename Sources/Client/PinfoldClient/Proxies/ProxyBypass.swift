import HTTPCore

/// The hosts that are contacted without a proxy, as in `no_proxy`.
///
/// Elements are separated by commas or spaces:
/// - A name stands for a host and all hosts in that domain: `example.com`, `.example.com` and
///   `*.example.com` all match `example.com` and `api.example.com`, but not `badexample.com`.
/// - An address or a network: `127.0.0.1`, `::1`, `10.0.0.0/8`, `fd00::/8`. Host names are not
///   resolved for comparison.
/// - `*` matches all hosts.
/// - Any of these with a port applies to that port only: `example.com:8080`, `.example.com:443`,
///   `[::1]:443`, `10.0.0.0/8:80`, `*:8080`. An IPv6 address must then be in brackets.
public struct ProxyBypass: Sendable, Hashable {
    /// The maximum number of elements in a list.
    public static let maximumElements = 4096

    private enum Host: Sendable, Hashable {
        case every
        /// A domain in lower case, without leading and trailing dots.
        case domain(String)
        case network(IPNetwork)
    }

    private struct Element: Sendable, Hashable {
        let host: Host
        let port: UInt16?
    }

    private let elements: [Element]

    /// Creates an empty list.
    public init() { elements = [] }

    /// Creates a list.
    ///
    /// - Parameter list: See ``ProxyBypass``.
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidProxy`` if an element is not
    ///   valid.
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

    /// Creates a list from the environment. Other programs may support more kinds of elements;
    /// those that are not supported here match no host.
    init(lenient list: String) {
        elements = Self.split(list).prefix(Self.maximumElements).compactMap { Self.element($0) }
    }

    /// Whether a host is contacted without a proxy.
    ///
    /// - Parameter host: The host in any letter case. An IPv6 address may have brackets.
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
        // Whether the last group is a port would be a guess.
        if case .network = host, text[..<colon].contains(":"), !text.hasPrefix("[") { return nil }
        return Element(host: host, port: port)
    }

    /// Returns `nil` if the text is not a name, an address or a network.
    private static func host(_ text: Substring) -> Host? {
        if text == "*" { return .every }
        if let network = try? IPNetwork(parsing: bare(text)) { return .network(network) }
        // Address bits after the prefix may be set; other programs ignore them, too.
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

    /// The host without brackets and without a trailing dot.
    private static func bare(_ host: Substring) -> String {
        if host.hasPrefix("["), host.hasSuffix("]") { return String(host.dropFirst().dropLast()) }
        return String(host.hasSuffix(".") ? host.dropLast() : host)
    }
}
