/// The Connection fields of a message (RFC 9110 §7.6.1).
///
/// An option may nominate any field as hop-by-hop. Nominations of fields that the gateway bases
/// decisions on are ignored: hop-by-hop ones are dropped anyway, and none of the others may be
/// nominated (they are meant for all recipients). So Connection cannot be used to strip Host,
/// Content-Length, Authorization, Cache-Control, Via or the like on the way to the next hop.
struct ConnectionOptions {
    private(set) var close = false
    private(set) var keepAlive = false
    private(set) var upgrade = false
    /// Whether some option may be a field name.
    private(set) var nominates = false

    /// Parses all Connection fields of a section.
    static func read(
        _ fields: borrowing FieldSection, _ bytes: HeadBytes, limit: Int
    ) throws(WireError) -> ConnectionOptions {
        var options = ConnectionOptions()
        // The value that nearly all messages have.
        if let field = fields.only(.connection) {
            options.keepAlive = bytes.holds(lowercase: "keep-alive", at: field.value)
            options.close = bytes.holds(lowercase: "close", at: field.value)
            if options.keepAlive || options.close { return options }
        }
        var count = 0
        for index in 0..<fields.count where fields[index].id == .connection {
            var list = TokenList(fields[index].value, allowsEmpty: true)
            while let option = try list.next(bytes, fault: .malformedConnection) {
                count &+= 1
                guard count <= limit else { throw .tooManyConnectionOptions }
                if bytes.holds(lowercase: "keep-alive", at: option) {
                    options.keepAlive = true
                } else if bytes.holds(lowercase: "close", at: option) {
                    options.close = true
                } else if bytes.holds(lowercase: "upgrade", at: option) {
                    options.upgrade = true
                } else {
                    options.nominates = true
                }
            }
        }
        return options
    }

    /// The fields that may be nominated: unknown ones, and those of which only the values matter.
    private static let nominable = FieldIDSet([
        .other, .userAgent, .referer, .cookie, .origin, .accept, .acceptEncoding, .acceptLanguage,
        .server, .altSvc, .retryAfter, .warning, .allow,
    ])

    /// Marks the fields that the options nominate. The options have already been parsed without
    /// error.
    static func markNominated(_ fields: inout FieldSection, _ bytes: HeadBytes) {
        guard fields.present.intersects(nominable) else { return }
        for connection in 0..<fields.count where fields[connection].id == .connection {
            var list = TokenList(fields[connection].value, allowsEmpty: true)
            while let option = (try? list.next(bytes, fault: .malformedConnection)) ?? nil {
                for index in 0..<fields.count
                where nominable.contains(fields[index].id)
                    && bytes.equalIgnoringCase(fields[index].name, option)
                {
                    fields.nominate(index)
                }
            }
        }
    }

    /// Whether the connection persists (RFC 9112 §9.3): by default in HTTP/1.1, on request in
    /// HTTP/1.0, never with close.
    func persists(_ version: HTTPVersion) -> Bool {
        !close && (version.persistsByDefault || keepAlive)
    }
}
