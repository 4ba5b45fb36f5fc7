/// A parsed and validated request head: offsets over its bytes, and the decisions made from it.
///
/// Every range is counted from the first byte given to the parser. A value can be reused for one
/// request after another; it keeps its storage.
public struct RequestHead: ~Copyable, Sendable {
    /// The method; for `other`, its bytes are at ``methodRange``.
    public var method = Method.get
    /// Whether the method is `other`, and is safe according to IANA's method registry.
    var isRegisteredAsSafe = false
    /// The method's bytes; the request line begins here (after an empty line, which is tolerated,
    /// RFC 9112 §2.2).
    public var methodRange = ByteRange()
    /// The request target's bytes as sent.
    public var target = ByteRange()
    /// The target's form, already checked against the method.
    public var form = TargetForm.origin
    /// The request's version.
    public var version = HTTPVersion.http11
    /// The scheme in absolute-form; `http` in all other forms.
    public var scheme = Scheme.http
    /// `host[:port]` as sent: from the target in absolute-form and authority-form, otherwise from
    /// Host. Empty only in HTTP/1.0 without Host.
    public var authority = ByteRange()
    /// The host in ``authority``, validated: without the port, the brackets of an IPv6 literal, and
    /// the trailing dot of a fully qualified name. Letter case is as sent.
    public var host = ByteRange()
    /// The kind of host.
    public var hostKind = HostKind.none
    /// The authority's port, or else the scheme's default.
    public var port: UInt16 = 80
    /// Whether the authority contains a port.
    public var hasExplicitPort = false
    /// Path and query. Begins with `/`, with these exceptions: in absolute-form it may be empty or
    /// begin with `?`, which means the same as with a leading `/` (see
    /// ``HeadWriter/appendOriginForm(of:in:)``); it is `*` in asterisk-form and empty in
    /// authority-form.
    public var path = ByteRange()
    /// Whether, in absolute-form, Host names a different authority. Not an error: the target wins
    /// (RFC 9112 §3.2.2), and Host is rewritten when the request is forwarded.
    public var hostConflicts = false
    /// The fields.
    public var fields = FieldSection()
    /// The size of the head in bytes, including its empty line.
    public var length = 0
    /// How the body ends: `none`, `length` or `chunked`. In HTTP/2 the fields do not say it all
    /// (``decideContent(follows:)``).
    public var framing = BodyFraming.none
    /// Whether the client allows the connection to persist after this exchange (RFC 9112 §9.3).
    public var keepAlive = true
    /// Whether the request asks for an upgrade that may be forwarded: HTTP/1.1 with Upgrade, and a
    /// Connection field that names it; see ``UpgradeProtocols``.
    public var wantsUpgrade = false
    /// Whether the client waits for 100 before it sends the body (RFC 9110 §10.1.1).
    public var expectsContinue = false
    /// Whether the client says that it accepts trailers: `TE: trailers` (RFC 9110 §6.5.1). This is
    /// what is passed on to the server.
    public var acceptsTrailers = false
    /// Whether trailers may be sent to the client: it says so, or its version has them anyway.
    @inlinable public var takesTrailers: Bool { acceptsTrailers || version.takesTrailersUnasked }

    /// Whether the method is safe: it does not ask for a change on the server (RFC 9110 §9.2.1).
    public var isSafe: Bool { method.isSafe || isRegisteredAsSafe }
    /// Whether repeating the request has no further effect (RFC 9110 §9.2.2). True for safe
    /// methods.
    public var isIdempotent: Bool { method.isIdempotent || isRegisteredAsSafe }

    /// Creates a head for a parser to fill.
    public init() {}
}
