/// A parsed and validated response head: offsets over its bytes, and the decisions made from it.
///
/// A 1xx response is a separate head; the final one follows it.
public struct ResponseHead: Sendable {
    /// The status code, 100 to 999.
    public var status: UInt16 = 200
    /// The reason phrase; may be empty.
    public var reason = ByteRange()
    /// The response's version.
    public var version = HTTPVersion.http11
    /// The fields.
    public var fields = FieldSection()
    /// The size of the head in bytes, including its empty line.
    public var length = 0
    /// How the body ends, taking the request's method into account.
    public var framing = BodyFraming.none
    /// Whether the connection can carry another exchange after this one. False for `untilClose`.
    public var keepAlive = true

    /// Whether this is an interim response, which another head follows. 101 is final.
    public var isInterim: Bool { status < 200 && status != 101 }

    /// Creates a head for a parser to fill.
    public init() {}
}
