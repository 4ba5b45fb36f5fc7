import CLinux
public import HTTPTypes
import PinfoldEngine

/// Which requests go through which proxy.
public struct ProxyConfiguration: Sendable, Hashable {
    enum Source: Sendable, Hashable {
        case direct
        case environment
        case variables([String: String])
        case fixed(http: Proxy?, https: Proxy?, ProxyBypass)
    }

    let source: Source

    /// None does: they go to their servers.
    public static let direct = ProxyConfiguration(source: .direct)

    /// What the process's environment says when the session is made (for
    /// ``RequestOptions/proxies``: when the request begins), read as curl reads it, but for a
    /// proxy without a port:
    ///
    /// | variable | names the proxy for |
    /// |---|---|
    /// | `http_proxy` | `http` URLs; only in lower case |
    /// | `https_proxy`, else `HTTPS_PROXY` | `https` URLs |
    /// | `all_proxy`, else `ALL_PROXY` | URLs whose scheme has no variable of its own |
    /// | `no_proxy`, else `NO_PROXY` | lists the hosts without a proxy (``ProxyBypass``) |
    ///
    /// | a proxy without a port | here | curl |
    /// |---|---|---|
    /// | `proxy.example`, `http://proxy.example` | 80 | 1080 |
    /// | `https://proxy.example` | 443 | 443 |
    ///
    /// `HTTP_PROXY` is not read: in a CGI program a client sets it, by a field `Proxy`.
    /// An empty variable is as none. One that names no proxy that can be used, such as one for
    /// SOCKS, is an error of the requests that it is for (``ClientError/Reason/invalidProxy``):
    /// they do not go around it.
    public static let environment = ProxyConfiguration(source: .environment)

    /// The same for variables that are given.
    public static func variables(_ variables: [String: String]) -> ProxyConfiguration {
        ProxyConfiguration(source: .variables(variables))
    }

    /// One proxy for all requests.
    ///
    /// - Parameter bypass: The hosts that are reached without it.
    public static func fixed(
        _ proxy: Proxy, bypass: ProxyBypass = ProxyBypass()
    ) -> ProxyConfiguration {
        ProxyConfiguration(source: .fixed(http: proxy, https: proxy, bypass))
    }

    /// A proxy for each scheme; nil: none.
    ///
    /// - Parameter bypass: The hosts that are reached without them.
    public static func fixed(
        http: Proxy?, https: Proxy?, bypass: ProxyBypass = ProxyBypass()
    ) -> ProxyConfiguration {
        ProxyConfiguration(source: .fixed(http: http, https: https, bypass))
    }

    /// The proxy that a request goes through; nil: none.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidProxy`` where a variable of the
    ///   environment names none that can be used; with ``ClientError/Reason/invalidRequest`` for a
    ///   request without scheme and authority.
    public func proxy(for request: HTTPRequest) throws(ClientError) -> Proxy? {
        guard let origin = request.origin else {
            throw ClientError(
                .invalidRequest, "the request has no scheme or no authority", of: request)
        }
        return try ProxyRules(self).proxy(for: origin)
    }
}

/// A configuration with what it takes from the environment.
struct ProxyRules: Sendable {
    private let http: Result<Proxy?, ClientError>
    private let https: Result<Proxy?, ClientError>
    private let bypass: ProxyBypass

    private static let names = [
        "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy",
        "NO_PROXY",
    ]

    private init(
        http: Result<Proxy?, ClientError>, https: Result<Proxy?, ClientError>, _ bypass: ProxyBypass
    ) {
        (self.http, self.https, self.bypass) = (http, https, bypass)
    }

    init(_ configuration: ProxyConfiguration) {
        switch configuration.source {
        case .direct: self.init(http: .success(nil), https: .success(nil), ProxyBypass())
        case .fixed(let http, let https, let bypass):
            self.init(http: .success(http), https: .success(https), bypass)
        case .variables(let variables): self.init(variables)
        case .environment:
            var variables: [String: String] = [:]
            for name in Self.names {
                if let value = getenv(name) { variables[name] = String(cString: value) }
            }
            self.init(variables)
        }
    }

    private init(_ variables: [String: String]) {
        func value(_ names: String...) -> (name: String, text: String)? {
            for name in names {
                if let text = variables[name], !text.isEmpty { return (name, text) }
            }
            return nil
        }
        let every = value("all_proxy", "ALL_PROXY")
        self.init(
            http: Self.proxy(value("http_proxy") ?? every),
            https: Self.proxy(value("https_proxy", "HTTPS_PROXY") ?? every),
            ProxyBypass(lenient: value("no_proxy", "NO_PROXY")?.text ?? ""))
    }

    /// What a variable names.
    private static func proxy(
        _ variable: (name: String, text: String)?
    ) -> Result<Proxy?, ClientError> {
        guard let variable else { return .success(nil) }
        do throws(ClientError) {
            return .success(try Proxy(variable.text))
        } catch {
            return .failure(
                ClientError(
                    .invalidProxy, "\(variable.name) in the environment: \(error.explanation)",
                    underlying: error.underlying))
        }
    }

    func proxy(for origin: RequestOrigin) throws(ClientError) -> Proxy? {
        let proxy = origin.scheme == "https" ? https : http
        if case .success(nil) = proxy { return nil }
        if bypass.contains(host: origin.host, port: origin.port) { return nil }
        return try proxy.get()
    }
}

extension SessionManager {
    /// The way of a request; nil: to the server itself. One that asks for another protocol gets a
    /// tunnel also in clear text: proxies that forward do not switch (RFC 6455 section 4.1).
    func proxyRoute(
        of request: HTTPRequest, to origin: RequestOrigin, _ options: RequestOptions,
        _ authentication: TaskAuthentication?
    ) throws(ClientError) -> ProxyRoute? {
        guard let proxy = try proxy(for: request, to: origin, options) else { return nil }
        return ProxyRoute(
            proxy.upstream(authentication, credentials),
            tunnelsClearText: request.headerFields.contains(.upgrade))
    }

    /// The proxy that asks for credentials; nil: none can have asked.
    ///
    /// - Parameter tunnel: It was asked for one; else it was given the request itself.
    func askingProxy(
        of request: HTTPRequest, forTunnel tunnel: Bool, _ options: RequestOptions
    ) throws(ClientError) -> Proxy? {
        guard let origin = request.origin, tunnel == Self.isTunnelled(request, to: origin) else {
            return nil
        }
        return try proxy(for: request, to: origin, options)
    }

    private static func isTunnelled(_ request: HTTPRequest, to origin: RequestOrigin) -> Bool {
        origin.scheme == "https" || request.headerFields.contains(.upgrade)
    }

    private func proxy(
        for request: HTTPRequest, to origin: RequestOrigin, _ options: RequestOptions
    ) throws(ClientError) -> Proxy? {
        let rules = options.proxies.map { ProxyRules($0) } ?? proxyRules
        do throws(ClientError) { return try rules.proxy(for: origin) } catch {
            throw error.about(request)
        }
    }
}

extension Proxy {
    /// Whose credentials it asks for.
    var asker: Asker {
        Asker(
            .init(scheme: scheme.rawValue, host: host, port: Int(port), isProxy: true),
            isProxy: true)
    }

    /// What the engine knows of it. Connections are shared by requests with the same credentials:
    /// those of the session's store, those that the proxy was named with, or a task's own.
    ///
    /// - Parameters:
    ///   - authentication: The task's; nil: it has no credentials of its own.
    ///   - store: The session's.
    func upstream(
        _ authentication: TaskAuthentication?, _ store: CredentialStore
    ) -> UpstreamProxy {
        let (asker, given) = (asker, authorization)
        var identity = given ?? ""
        let value: UpstreamProxy.Authorization
        if let authentication, authentication.hasOwn(for: asker) {
            identity += " \(authentication.task)"
            value = { authentication.unasked(asker.question($0, $1))?.value ?? given }
        } else if let given {
            value = { _, _ in given }
        } else {
            // The engine keeps it for all tasks.
            value = { (try? store.authorization(for: asker.question($0, $1)))??.value }
        }
        return UpstreamProxy(
            host: host, port: port, isSecure: scheme == .https, identity: identity,
            authorization: value)
    }
}

extension HTTPResponse {
    /// What a proxy answered to CONNECT.
    init(_ answer: ProxyAnswer) {
        var fields = HTTPFields()
        for field in answer.fields {
            guard let name = HTTPField.Name(field.name) else { continue }
            fields.append(HTTPField(name: name, value: field.value))
        }
        self.init(status: .init(code: Int(answer.status)), headerFields: fields)
    }
}

extension ClientError.Reason {
    init(_ fault: ProxyFault) {
        switch fault {
        case .timeout, .unreachable(.connectTimeout): self = .timedOut
        case .refused(let answer) where answer.status == 407: self = .proxyAuthenticationRequired
        case .unreachable, .tlsFailed, .refused, .closed, .badAnswer, .tooManyInterim,
            .spokeUnasked:
            self = .proxyFailed
        }
    }
}
