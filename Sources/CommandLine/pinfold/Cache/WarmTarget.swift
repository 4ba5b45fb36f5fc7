import Clocks
import EventLoop
import Gateway
import HTTPCore
import PinfoldConfiguration
import PinfoldEngine
import PinfoldTLS

/// Where URLs are requested, and with which fields.
struct WarmTarget: Sendable {
    /// What a listener with TLS is verified by.
    struct Security: Sendable {
        var context: TLSClientContext
        /// The name or address that its certificate must be for.
        var host: String
    }

    var endpoint: Endpoint
    /// `nil` for a listener without TLS.
    var security: Security?
    /// Whether the whole URL is the request's target.
    var isForward: Bool
    var fields: [String]

    /// The request for a URL.
    func request(_ url: String) throws -> WarmRequest {
        for scheme in ["http://", "https://"] where url.lowercasedASCII.hasPrefix(scheme) {
            let rest = url.dropFirst(scheme.count).prefix { $0 != "#" }
            let authority = rest.prefix { !"/?".contains($0) }
            let path = rest.dropFirst(authority.count)
            guard !authority.isEmpty, !authority.contains("@"),
                rest.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
            else { break }
            let origin = path.hasPrefix("/") ? String(path) : "/" + path
            let target = isForward ? scheme + authority + origin : origin
            var head = "GET \(target) HTTP/1.1\r\nHost: \(authority)\r\n"
            for field in fields { head += field + "\r\n" }
            let names = fields.map { $0.prefix { $0 != ":" }.lowercasedASCII }
            if !names.contains("user-agent") {
                head += "User-Agent: pinfold/\(pinfoldVersion)\r\n"
            }
            if !names.contains("accept") { head += "Accept: */*\r\n" }
            return WarmRequest(url: url, head: Array((head + "\r\n").utf8))
        }
        throw CommandError("\(url): expected a URL that begins with http:// or https://")
    }
}

/// A request that is to be sent.
struct WarmRequest: Sendable {
    var url: String
    var head: [UInt8]
}

// Which listener that is.
extension CacheWarm {
    func findTarget() throws -> WarmTarget {
        var fields = headers
        if let userFile {
            let text = String(decoding: try CommandFiles.read(userFile), as: UTF8.self)
            let line = text.prefix { !$0.isNewline }
            guard line.contains(":") else {
                throw CommandError("\(userFile) has no user; expected user:password")
            }
            let name = reverse == nil ? "Proxy-Authorization" : "Authorization"
            fields.append("\(name): Basic \(Base64.encode(Array(line.utf8)))")
        }
        let target = WarmTarget(
            endpoint: .unnamed, security: nil, isForward: reverse == nil, fields: fields)
        if let reverse { return try find(target, reverse, "--reverse") }
        if let proxy { return try find(target, proxy, "--proxy") }
        return try findFirst(target)
    }

    /// The listener that an option names.
    private func find(
        _ target: WarmTarget, _ text: String, _ option: String
    ) throws -> WarmTarget {
        guard let location = RunningGateway.Target(text), let host = location.host,
            let port = location.port
        else {
            throw CommandError(
                "\(option) \(text): expected ADDRESS:PORT, http://HOST[:PORT] or "
                    + "https://HOST[:PORT]")
        }
        var target = target
        if location.isSecure {
            target.security = WarmTarget.Security(
                context: try options.listenerContext(isNamed: true), host: host)
        }
        let addresses = try addresses(of: host)
        // If it cannot be connected to, that is found with each URL.
        if target.security == nil, addresses.count == 1 {
            target.endpoint = Endpoint(address: addresses[0], port: port)
            return target
        }
        var failure: WarmError?
        for address in addresses {
            target.endpoint = Endpoint(address: address, port: port)
            do throws(WarmError) {
                try reach(target)
                return target
            } catch {
                failure = error
            }
        }
        throw CommandError("\(option) \(text): \(failure?.advice ?? "it has no address")")
    }

    /// The first forward listener that the gateway names.
    private func findFirst(_ target: WarmTarget) throws -> WarmTarget {
        let status = try options.gatewayOrExit().value(.get, "/api/v1/status")
        let listeners = status.list("listeners").filter { $0["kind"]?.text == "forward" }
        var target = target
        for isSecure in [false, true] {
            for listener in listeners where listener["tls"] == .boolean(isSecure) {
                guard let address = listener["address"]?.text, var endpoint = Endpoint(address)
                else { continue }
                if endpoint.address.unmapped.scope == .unspecified {
                    endpoint.address =
                        endpoint.address.family == .v4 ? .loopbackV4 : .loopbackV6
                }
                target.endpoint = endpoint
                guard isSecure else { return target }
                target.security = WarmTarget.Security(
                    context: try options.listenerContext(isNamed: false),
                    host: "\(endpoint.address)")
                do throws(WarmError) {
                    try reach(target)
                } catch {
                    throw CommandError("the listener at \(endpoint): \(error.advice)")
                }
                return target
            }
        }
        throw CommandError("the gateway has no forward listener; expected --proxy or --reverse")
    }

    private func addresses(of host: String) throws -> [IPAddress] {
        if let address = IPAddress(host) { return [address] }
        let found = try NameLookup.addresses(
            of: host.lowercasedASCII, ResolverConfiguration(),
            milliseconds: Int64(options.timeout * 1000))
        switch found {
        case .success(let addresses): return addresses
        case .failure(let error): throw CommandError("\(host): \(error.explanation)")
        }
    }

    /// Connects, and verifies the listener.
    private func reach(_ target: WarmTarget) throws(WarmError) {
        var connection = WarmConnection(to: target, timeout: Int64(options.timeout * 1000))
        try connection.open()
    }
}

extension WarmError {
    /// The error with what helps if the listener is not trusted.
    fileprivate var advice: String {
        guard case .notSecure(.trust) = self else { return description }
        return "\(self); expected --cacert with its issuer, https://NAME:PORT with a name that its "
            + "certificate has, or --config with its certificate"
    }
}
