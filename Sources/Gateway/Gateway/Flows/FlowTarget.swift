import HTTPCore

/// What a request was for, as everybody is shown it: from its target and, where that does not say
/// it, from what it came through.
///
/// Userinfo is never a part of it, nor is a fragment, which is no part of a request.
struct FlowTarget: Sendable, Equatable {
    /// `http` or `https`; `nil` for a tunnel.
    var scheme: String?
    /// The host in lower case, with the port if it was named; empty if it is not known.
    var host: String
    /// The path without the query; `nil` for a tunnel, and if the target was not understood.
    var path: String?
    /// The query; `nil` if there is none.
    var query: String?

    /// What is known of a request.
    struct Request {
        var method: String
        /// The target as it was sent.
        var target: String
        /// Whether only the beginning of the target is held.
        var isTargetCut = false
        /// `host[:port]` as the request names it; empty if it does not.
        var host: String
        /// `host:port` of the intercepted tunnel that it came through, otherwise empty.
        var tunnel: String
        /// `host:port` at a transparent listener, otherwise empty.
        var authority: String
        /// Whether its client spoke TLS.
        var isSecure: Bool
        /// Whether it was HTTP.
        var isHTTP: Bool
    }

    /// What a flow was for.
    init(_ flow: HeldFlow) {
        self.init(
            Request(
                method: flow.methodText, target: String(decoding: flow.targetBytes, as: UTF8.self),
                isTargetCut: flow.isTargetCut, host: flow.hostText, tunnel: flow.tunnel,
                authority: flow.authority, isSecure: flow.record.clientTLS != nil,
                isHTTP: flow.record.version != nil))
    }

    /// What a record of a queue was for.
    init(_ entry: FlowQueue.Entry) {
        func text(_ bytes: UnsafeRawBufferPointer) -> String {
            String(decoding: bytes, as: UTF8.self)
        }
        self.init(
            Request(
                method: text(entry.method), target: text(entry.target), host: text(entry.host),
                tunnel: text(entry.tunnel), authority: text(entry.authority),
                isSecure: entry.record.clientTLS != nil, isHTTP: entry.record.version != nil))
    }

    init(_ request: Request) {
        let target = request.target
        if !request.isHTTP, target.isEmpty {
            self.init(scheme: nil, host: request.authority.lowercasedASCII)
        } else if request.method == "CONNECT" {
            // What is left of a host may be userinfo, or another host.
            self.init(
                scheme: nil, host: request.isTargetCut ? "" : Self.withoutUserinfo(target[...]))
        } else if target.hasPrefix("/") || target == "*" {
            let named = [request.tunnel, request.authority, request.host].first { !$0.isEmpty }
            self.init(
                scheme: !request.tunnel.isEmpty || request.isSecure ? "https" : "http",
                host: Self.withoutUserinfo((named ?? "")[...]))
            split(target[...])
        } else {
            self.init(absolute: target, isCut: request.isTargetCut)
        }
    }

    private init(scheme: String?, host: String) {
        self.scheme = scheme
        self.host = host
    }

    /// - Parameters:
    ///   - target: a URL, or what is none: then nothing of it is shown.
    ///   - isCut: whether only its beginning is held.
    private init(absolute target: String, isCut: Bool) {
        let scheme = target.prefix { $0 != ":" }
        let rest = target.dropFirst(scheme.count)
        guard rest.hasPrefix("://") else {
            self.init(scheme: nil, host: "")
            return
        }
        let authority = rest.dropFirst(3).prefix { !"/?#".contains($0) }
        guard !isCut || authority.endIndex < rest.endIndex else {
            self.init(scheme: nil, host: "")
            return
        }
        self.init(scheme: scheme.lowercasedASCII, host: Self.withoutUserinfo(authority))
        let path = rest.dropFirst(3 + authority.count)
        split(path.hasPrefix("/") ? path : "/" + path)
    }

    private static func withoutUserinfo(_ authority: Substring) -> String {
        guard let at = authority.lastIndex(of: "@") else { return authority.lowercasedASCII }
        return authority[authority.index(after: at)...].lowercasedASCII
    }

    private mutating func split(_ target: Substring) {
        let target = target.prefix { $0 != "#" }
        let path = target.prefix { $0 != "?" }
        self.path = String(path)
        if path.count < target.count { query = String(target.dropFirst(path.count + 1)) }
    }

    /// The path, with the query if it may be shown, or `***` in its place.
    func text(withQuery isShown: Bool) -> String? {
        path.map { path in query.map { path + "?" + (isShown ? $0 : "***") } ?? path }
    }

    /// The host alone and its port; `nil` for a port that was not named.
    var hostAndPort: (host: String, port: UInt16?) {
        let digits = host.reversed().prefix { $0.isASCII && $0.isNumber }.reversed()
        let rest = host.dropLast(digits.count)
        let isNamed = rest.last == ":" && !digits.isEmpty
        let name = isNamed ? rest.dropLast() : host[...]
        return (
            name.filter { $0 != "[" && $0 != "]" }, isNamed ? UInt16(String(digits)) : nil
        )
    }

    /// The port that was named, or that of the scheme; `nil` without a host, and for a tunnel whose
    /// port was not understood.
    var port: UInt16? {
        guard !host.isEmpty else { return nil }
        return hostAndPort.port ?? scheme.map { $0 == "https" ? 443 : 80 }
    }
}
