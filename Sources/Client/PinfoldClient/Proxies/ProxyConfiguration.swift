import CLinux
public import HTTPTypes
import PinfoldEngine

/// Determines which proxy a request uses.
public struct ProxyConfiguration: Sendable, Hashable {
    enum Source: Sendable, Hashable {
        case direct
        case environment
        case variables([String: String])
        case fixed(http: Proxy?, https: Proxy?, ProxyBypass)
    }

    let source: Source

    /// No proxy: requests go directly to their servers.
    public static let direct = ProxyConfiguration(source: .direct)

    /// The proxies in the process's environment, which is read when the session is created (for
    /// ``RequestOptions/proxies``: when the request begins). They are interpreted as by curl,
    /// except for a proxy without a port:
    ///
    /// | variable | proxy for |
    /// |---|---|
    /// | `http_proxy` | `http` URLs; only in lower case |
    /// | `https_proxy`, else `HTTPS_PROXY` | `https` URLs |
    /// | `all_proxy`, else `ALL_PROXY` | URLs whose scheme has no variable |
    /// | `no_proxy`, else `NO_PROXY` | the hosts without a proxy (``ProxyBypass``) |
    ///
    /// | a proxy without a port | here | curl |
    /// |---|---|---|
    /// | `proxy.example`, `http://proxy.example` | 80 | 1080 |
    /// | `https://proxy.example` | 443 | 443 |
    /// | `socks5://proxy.example`, `socks5h://proxy.example` | 1080 | 1080 |
    ///
    /// `HTTP_PROXY` is ignored, because in a CGI program a client can set it by a `Proxy` field. An
    /// empty variable counts as not set. If a variable names a proxy that cannot be used, such as a
    /// SOCKS4 proxy, the requests to which it applies fail (``ClientError/Reason/invalidProxy``):
    /// they do not bypass the proxy.
    public static let environment = ProxyConfiguration(source: .environment)

    /// Proxies from given variables, interpreted as those in the ``environment``.
    public static func variables(_ variables: [String: String]) -> ProxyConfiguration {
        ProxyConfiguration(source: .variables(variables))
    }

    /// A single proxy for all requests.
    ///
    /// - Parameters:
    ///   - proxy: The proxy.
    ///   - bypass: The hosts that are contacted without it.
    public static func fixed(
        _ proxy: Proxy, bypass: ProxyBypass = ProxyBypass()
    ) -> ProxyConfiguration {
        ProxyConfiguration(source: .fixed(http: proxy, https: proxy, bypass))
    }

    /// A proxy for each scheme, or `nil` for none.
    ///
    /// - Parameters:
    ///   - http: The proxy for `http` URLs.
    ///   - https: The proxy for `https` URLs.
    ///   - bypass: The hosts that are contacted without a proxy.
    public static func fixed(
        http: Proxy?, https: Proxy?, bypass: ProxyBypass = ProxyBypass()
    ) -> ProxyConfiguration {
        ProxyConfiguration(source: .fixed(http: http, https: https, bypass))
    }

    /// Returns the proxy for a request, or `nil` for none.
    ///
    /// - Throws: ``ClientError`` with ``ClientError/Reason/invalidProxy`` if a variable in the
    ///   environment names a proxy that cannot be used, or with
    ///   ``ClientError/Reason/invalidRequest`` if the request has no scheme or no authority.
    public func proxy(for request: HTTPRequest) throws(ClientError) -> Proxy? {
        guard let origin = request.origin else {
            throw ClientError(
                .invalidRequest, "the request has no scheme or no authority", of: request)
        }
        return try ProxyRules(self).proxy(for: origin)
    }
}

/// A configuration together with the values from the environment.
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

    /// Returns the proxy that a variable names.
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
    /// Returns the route of a request, or `nil` if it goes directly to the server. An upgrade
    /// request gets a tunnel even in clear text, because forwarding proxies do not switch protocols
    /// (RFC 6455 section 4.1).
    func proxyRoute(
        of request: HTTPRequest, to origin: RequestOrigin, _ options: RequestOptions,
        _ authentication: TaskAuthentication?
    ) throws(ClientError) -> ProxyRoute? {
        guard let proxy = try proxy(for: request, to: origin, options) else { return nil }
        return ProxyRoute(
            proxy.upstream(authentication, credentials),
            tunnelsClearText: request.headerFields.contains(.upgrade))
    }

    /// Returns the proxy that can have sent a challenge, or `nil` if there is none.
    ///
    /// - Parameter tunnel: Whether the proxy was asked for a tunnel rather than sent the request
    ///   itself.
    func challengingProxy(
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
        guard configuration.transport == nil, configuration.connections.everything == nil
        else { return nil }
        let rules = options.proxies.map { ProxyRules($0) } ?? proxyRules
        do throws(ClientError) { return try rules.proxy(for: origin) } catch {
            throw error.about(request)
        }
    }
}

extension Proxy {
    /// The sender of the proxy's challenges.
    var challengeSource: ChallengeSource {
        ChallengeSource(
            .init(scheme: scheme.rawValue, host: host, port: Int(port), isProxy: true),
            isProxy: true)
    }

    /// The proxy in the engine's form. Connections are shared by requests with the same
    /// credentials: those in the session's store, those given with the proxy, or those of a single
    /// task.
    ///
    /// - Parameters:
    ///   - authentication: The task's state, or `nil` if it has no credentials of its own.
    ///   - store: The session's credentials.
    func upstream(
        _ authentication: TaskAuthentication?, _ store: CredentialStore
    ) -> UpstreamProxy {
        let engineScheme = UpstreamProxy.Scheme(rawValue: scheme.rawValue) ?? .http
        if !scheme.isHTTP {
            return UpstreamProxy(
                host: host, port: port, scheme: engineScheme,
                identity: "\(user ?? ""):\(password ?? "")", socksCredentials: socksCredentials)
        }
        let (source, given) = (challengeSource, authorization)
        var identity = given ?? ""
        let value: UpstreamProxy.Authorization
        if let authentication, authentication.hasOwn(for: source) {
            identity += " \(authentication.task)"
            value = { authentication.preemptiveAnswer(source.request($0, $1))?.value ?? given }
        } else if let given {
            value = { _, _ in given }
        } else {
            // The engine keeps this closure for all tasks.
            value = { (try? store.authorization(for: source.request($0, $1)))??.value }
        }
        return UpstreamProxy(
            host: host, port: port, scheme: engineScheme, identity: identity,
            authorization: value)
    }
}

extension HTTPResponse {
    /// Creates a response from a proxy's answer to CONNECT.
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
    init(_ fault: ProxyError) {
        switch fault {
        case .timeout, .unreachable(.connectTimeout): self = .timedOut
        case .refused(let answer) where answer.status == 407: self = .proxyAuthenticationRequired
        case .socks(.authenticationRequired), .socks(.authenticationFailed):
            self = .proxyAuthenticationRequired
        case .unreachable, .tlsFailed, .refused, .closed, .badAnswer, .tooManyInterim,
            .spokeUnasked, .socks, .loop, .ownAddress, .nameUnchecked:
            self = .proxyFailed
        }
    }
}
