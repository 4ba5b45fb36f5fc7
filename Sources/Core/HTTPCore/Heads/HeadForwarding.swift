extension HeadWriter {
    /// Appends the field lines of a section as they were received, in their order, leaving out
    /// those in `omitted`, and those that Connection nominated if `dropsNominated`. Kept lines that
    /// follow one another are copied as one run. No empty line is appended.
    package mutating func appendFields(
        _ fields: borrowing FieldSection, of bytes: Span<UInt8>, omitting omitted: FieldIDSet,
        dropsNominated: Bool
    ) {
        guard !fields.isEmpty else { return }
        let nominated = dropsNominated && fields.hasNominated
        var runStart = Int(fields[0].name.start)
        let end = Int(fields.end)
        if nominated || fields.present.intersects(omitted) {
            for index in 0..<fields.count {
                let field = fields[index]
                guard omitted.contains(field.id) || (nominated && field.isNominated) else {
                    continue
                }
                append(bytes.extracting(runStart..<Int(field.name.start)))
                runStart = index &+ 1 < fields.count ? Int(fields[index &+ 1].name.start) : end
            }
        }
        append(bytes.extracting(runStart..<end))
    }

    /// Appends the field lines that go on to the next hop: all but hop-by-hop ones
    /// (``FieldIDSet/hopByHop``), those that Connection nominated, and `omitted`. No empty line is
    /// appended.
    package mutating func appendForwardedFields(
        _ fields: borrowing FieldSection, of bytes: Span<UInt8>, omitting omitted: FieldIDSet = []
    ) {
        appendFields(
            fields, of: bytes, omitting: omitted.union(.hopByHop), dropsNominated: true)
    }

    /// The same of a request's fields; the section is not copied, which one that is an object's is
    /// where it is handed over by itself.
    package mutating func appendForwardedFields(
        of head: borrowing RequestHead, in bytes: Span<UInt8>, omitting omitted: FieldIDSet = []
    ) {
        appendForwardedFields(head.fields, of: bytes, omitting: omitted)
    }

    /// Appends the method's bytes as received.
    package mutating func appendMethod(of head: borrowing RequestHead, in bytes: Span<UInt8>) {
        append(head.methodRange, of: bytes)
    }

    /// Appends the request line as it was received, or with another method.
    package mutating func appendRequestLine(
        of head: borrowing RequestHead, in bytes: Span<UInt8>, method: StaticString? = nil
    ) {
        if let method { append(method) } else { appendMethod(of: head, in: bytes) }
        append(byte: 0x20)
        append(head.target, of: bytes)
        append(head.version == .http11 ? " HTTP/1.1\r\n" : " HTTP/1.0\r\n")
    }

    /// Appends path and query as a server wants them: with `/` in front where absolute-form left it
    /// out, and `*` for OPTIONS of a whole server (RFC 9112 §3.2.1, §3.2.4).
    package mutating func appendOriginForm(of head: borrowing RequestHead, in bytes: Span<UInt8>) {
        if head.form == .absolute {
            if head.path.isEmpty { return append(head.method == .options ? "*" : "/") }
            if bytes[Int(head.path.start)] != Byte.slash { append("/") }
        }
        append(head.path, of: bytes)
    }
}
