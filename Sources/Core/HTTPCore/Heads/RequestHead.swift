/// A parsed and validated request head: offsets over its bytes, and the decisions about it.
///
/// Every range is counted from the first byte given to the parser. A value can be used for one
/// request after another; its storage stays.
package struct RequestHead: ~Copyable, Sendable {
    /// The method; the bytes of `other` are at ``methodRange``.
    package var method = Method.get
    /// The method is `other`, and one that IANA's registry of methods says is safe.
    var isRegisteredAsSafe = false
    /// The method's bytes; the request line begins here (after a tolerated empty line, RFC 9112
    /// §2.2).
    package var methodRange = ByteRange()
    /// The request target's bytes as sent.
    package var target = ByteRange()
    /// The target's form, already checked against the method.
    package var form = TargetForm.origin
    /// The request's version.
    package var version = HTTPVersion.http11
    /// The scheme of absolute-form; `http` for all others.
    package var scheme = Scheme.http
    /// `host[:port]` as sent: the target's in absolute-form and authority-form, else Host's value.
    /// Empty only in HTTP/1.0 without Host.
    package var authority = ByteRange()
    /// The host in ``authority``, validated: without port, without the brackets of an IPv6
    /// literal, without the final dot of a fully qualified name. Letter case is as sent.
    package var host = ByteRange()
    /// What the host is.
    package var hostKind = HostKind.none
    /// The port: that of the authority, or else the scheme's.
    package var port: UInt16 = 80
    /// Whether the authority names the port.
    package var hasExplicitPort = false
    /// Path and query. Begins with `/`, except: in absolute-form it may be empty or begin with `?`,
    /// and means the same with `/` in front (see ``HeadWriter/appendOriginForm(of:in:)``); `*` in
    /// asterisk-form; empty in authority-form.
    package var path = ByteRange()
    /// In absolute-form: whether Host names another authority. Not an error: the target wins
    /// (RFC 9112 §3.2.2), and whoever forwards writes Host anew.
    package var hostConflicts = false
    /// The fields.
    package var fields = FieldSection()
    /// Bytes of the whole head with its empty line.
    package var length = 0
    /// How the body ends: `none`, `length` or `chunked`.
    package var framing = BodyFraming.none
    /// Whether the client lets the connection persist after this exchange (RFC 9112 §9.3).
    package var keepAlive = true
    /// Whether an upgrade is asked for that may go on: Upgrade, and Connection naming it, in
    /// HTTP/1.1; see ``UpgradeProtocols``.
    package var wantsUpgrade = false
    /// Whether the client waits for 100 before it sends the body (RFC 9110 §10.1.1).
    package var expectsContinue = false
    /// Whether `TE: trailers` says that the client takes trailers (RFC 9110 §6.5.1).
    package var acceptsTrailers = false

    /// Whether the request asks for no change at its server (RFC 9110 §9.2.1).
    package var isSafe: Bool { method.isSafe || isRegisteredAsSafe }
    /// Whether a repeat of the request has the effect of one (RFC 9110 §9.2.2). Safe methods are.
    package var isIdempotent: Bool { method.isIdempotent || isRegisteredAsSafe }

    /// A head to parse into.
    package init() {}
}
