import CachePolicy
import HTTPCore
import PinfoldConfiguration

/// Applies a route's rules to request heads.
///
/// Fields that frame a message, or that are about one connection, are never changed
/// (``FieldRule``). A field that Connection nominates ends at the gateway: it is not renamed, and
/// does not count as sent when a default is considered. If the rules write a field with such a
/// name, their value is sent to the server: the client's lines with the name are removed, and the
/// name is removed from Connection, so that no client can strip what a route adds.
package struct RequestHeadRules: Sendable {
    private let fields: HeaderSteps
    private let forwardsUser: Bool
    private let authorization: RequestAuthorization?
    private let target: TargetRules
    private let cachePolicy: RequestCachePolicy

    /// The rules of a route; ``RequestRules/parameters`` and ``RequestRules/body`` are about
    /// content, and not used here.
    package init(_ rules: RequestRules) {
        fields = HeaderSteps(rules.headers)
        forwardsUser = rules.forwardsUser
        authorization = rules.authorization
        target = TargetRules(rules.pathPrefixes, rules.query)
        cachePolicy = rules.cachePolicy
    }

    /// Whether no head is ever changed.
    package var isEmpty: Bool {
        fields.isEmpty && !forwardsUser && authorization == nil && target.isEmpty
            && cachePolicy == .useProtocol
    }

    /// The path and query with which a request is sent; `nil` if they do not change.
    package func path(
        rewriting request: borrowing RequestHead, in bytes: Span<UInt8>
    ) -> [UInt8]? {
        let authority = Int(request.path.start) - Int(request.target.start)
        return target.target(of: request, in: bytes).map { Array($0.dropFirst(authority)) }
    }

    /// The new head of a request, with its empty line; `nil` if it does not change. It may be
    /// longer than the limit for heads from clients.
    ///
    /// CONNECT is never changed: its head ends at the gateway.
    ///
    /// - Parameters:
    ///   - request: the head as parsed.
    ///   - bytes: the bytes it was parsed from.
    ///   - isSecure: whether the request is sent by TLS.
    ///   - withoutAuthorization: whether Authorization was for the gateway: it is removed before
    ///     the rules are applied.
    ///   - user: who is asking, for X-Forwarded-User; `nil` if that is not known.
    /// - Throws: `authorizationInClearText` if the gateway's credentials would have to be added but
    ///   may not be sent without TLS.
    package func head(
        rewriting request: borrowing RequestHead, in bytes: Span<UInt8>, isSecure: Bool,
        withoutAuthorization: Bool = false, user: [UInt8]? = nil
    ) throws(TransformationError) -> [UInt8]? {
        guard !isEmpty, request.form != .authority else { return nil }
        var lines = HeadLines(request.fields)
        if withoutAuthorization { lines.remove(.authorization, in: bytes) }
        let hasOptions = request.fields.contains(.connection)
        fields.change(&lines, releases: hasOptions, in: bytes)
        if forwardsUser { forward(user, in: &lines, hasOptions: hasOptions, in: bytes) }
        try authorize(&lines, request.method, in: bytes, isSecure: isSecure)
        applyCachePolicy(&lines, in: bytes)
        let newTarget = target.target(of: request, in: bytes)
        guard lines.isChanged || newTarget != nil else { return nil }
        return RequestHeads.head(of: request, in: bytes, target: newTarget, lines: lines)
    }

    /// Makes X-Forwarded-User say who is asking, whatever the client and the other rules say. Names
    /// with `_` for `-` are removed as well: servers that pass fields as variables (CGI) could not
    /// tell them apart.
    private func forward(
        _ user: [UInt8]?, in lines: inout HeadLines, hasOptions: Bool, in bytes: Span<UInt8>
    ) {
        if hasOptions { lines.release(.forwardedUser, in: bytes) }
        for index in lines.lines.indices.reversed()
        where lines.isLike(.forwardedUser, at: index, in: bytes) {
            lines.remove(at: index)
        }
        if let user { lines.append(HeadName.forwardedUser.written, user) }
    }

    /// Adds the credentials if there are none after the fields were changed. Not to TRACE, which
    /// would show them to the client (RFC 9110 §9.3.8).
    private func authorize(
        _ lines: inout HeadLines, _ method: Method, in bytes: Span<UInt8>, isSecure: Bool
    ) throws(TransformationError) {
        guard let authorization, method != .trace,
            !lines.contains(.authorization, in: bytes)
        else { return }
        guard isSecure || authorization.allowsClearText else {
            throw TransformationError(
                .authorizationInClearText,
                "the request has no Authorization, and the gateway's is sent over TLS only")
        }
        guard let value = FieldRule.value(authorization.fieldValue.text) else { return }
        lines.append(HeadName.authorization.written, value)
    }

    /// Sets the policy in Cache-Control, replacing the client's cache directives there and in
    /// Pragma, except its `no-store` and `no-transform`.
    ///
    /// `max-stale` makes the cache answer with a stored response whatever its age. A response that
    /// according to the server must be revalidated (`must-revalidate`, `no-cache` and the like) is
    /// still not served stale: RFC 9111 forbids it (§4.2.4). Nor is anything looked up for
    /// `no-store`.
    private func applyCachePolicy(_ lines: inout HeadLines, in bytes: Span<UInt8>) {
        var value: [UInt8]
        switch cachePolicy {
        case .useProtocol: return
        case .reloadIgnoringCache: value = Array("no-cache".utf8)
        case .returnCacheElseLoad: value = Array("max-stale".utf8)
        case .returnCacheDontLoad: value = Array("only-if-cached, max-stale".utf8)
        }
        var asked = CacheDirectives()
        for line in lines.values(.cacheControl, in: bytes) {
            asked.add(ByteRange(from: 0, to: line.count), in: line.span)
        }
        if asked.flags.contains(.noStore) { value += Array(", no-store".utf8) }
        if asked.flags.contains(.noTransform) { value += Array(", no-transform".utf8) }
        lines.set(.cacheControl, value, in: bytes)
        lines.remove(.pragma, in: bytes)
    }
}

extension HeadLines {
    /// Makes sure that lines with a name are forwarded to the server: removes the name from
    /// Connection, and the lines that would have ended here because of it from the head.
    mutating func release(_ name: HeadName, in head: Span<UInt8>) {
        for index in lines.indices.reversed() {
            if lines[index].isNominated, isNamed(name, at: index, in: head) {
                remove(at: index)
            } else if isNamed(.connection, at: index, in: head) {
                removeOption(name, at: index, in: head)
            }
        }
    }

    /// The line is kept even if it becomes empty, because an older client's Proxy-Connection only
    /// counts if there is no Connection.
    private mutating func removeOption(_ name: HeadName, at index: Int, in head: Span<UInt8>) {
        let options = value(at: index, in: head)
        var kept: [UInt8] = []
        var isFound = false
        var members = ListMembers(options.span)
        while let member = members.next(in: options.span) {
            let option = options.span.extracting(member)
            if option.equals(lowercase: name.lowercase.span) {
                isFound = true
                continue
            }
            if !kept.isEmpty { kept += [UInt8(ascii: ","), 0x20] }
            kept.append(option)
        }
        if isFound { setValue(at: index, to: kept) }
    }
}
