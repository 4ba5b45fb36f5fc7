/// What the Connection fields of a message say (RFC 9110 §7.6.1).
///
/// An option may nominate any field as hop-by-hop. Nominations of fields that decisions are made by
/// are not followed: hop-by-hop ones go anyway, and none of the others may be nominated (they are
/// meant for all recipients), so that Connection cannot be used to strip Host, Content-Length,
/// Authorization, Cache-Control, Via or the like on the way to the next hop.
struct ConnectionOptions {
    private(set) var close = false
    private(set) var keepAlive = false
    private(set) var upgrade = false
    /// Whether some option may be the name of a field.
    private(set) var nominates = false

    /// Reads all Connection fields of a section.
    static func read(
        _ fields: borrowing FieldSection, _ bytes: HeadBytes, limit: Int
    ) throws(WireError) -> ConnectionOptions {
        var options = ConnectionOptions()
        // What nearly all messages say.
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

    /// The fields that may be nominated: the unknown ones, and those known only for their values.
    private static let nominable = FieldIDSet([
        .other, .userAgent, .referer, .cookie, .origin, .accept, .acceptEncoding, .acceptLanguage,
        .server, .altSvc, .retryAfter, .warning, .allow,
    ])

    /// Marks the fields that an option names. The options were read without error before.
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

    /// Whether the connection persists (RFC 9112 §9.3): by default in HTTP/1.1, when asked for in
    /// HTTP/1.0, never with close.
    func persists(_ version: HTTPVersion) -> Bool {
        !close && (version == .http11 || keepAlive)
    }
}
