import HTTPCore

/// What a request was for, as it is shown: from its target and, where that does not say it, from
/// what it came through.
///
/// Userinfo is never a part of it.
struct FlowTarget: Sendable, Equatable {
    /// `http` or `https`; `nil` for a tunnel.
    var scheme: String?
    /// The host, with the port if it was named; empty if it is not known.
    var host: String
    /// The path without the query; `nil` for a tunnel, and if the target was not understood.
    var path: String?
    /// The query; `nil` if there is none.
    var query: String?

    /// What a flow was for.
    init(_ flow: HeldFlow) {
        let target = String(decoding: flow.targetBytes, as: UTF8.self)
        if flow.record.version == nil, target.isEmpty {
            self.init(scheme: nil, host: flow.authority)
        } else if flow.methodText == "CONNECT" {
            // What is left of a host may be userinfo, or another host.
            self.init(
                scheme: nil, host: flow.isTargetCut ? "" : Self.withoutUserinfo(target[...]))
        } else if target.hasPrefix("/") || target == "*" {
            let isSecure = !flow.tunnel.isEmpty || flow.record.clientTLS != nil
            let named = [flow.tunnel, flow.authority].first { !$0.isEmpty }
            self.init(
                scheme: isSecure ? "https" : "http",
                host: named ?? Self.withoutUserinfo(flow.hostText[...]))
            split(target[...])
        } else {
            self.init(absolute: target, isCut: flow.isTargetCut)
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
}
