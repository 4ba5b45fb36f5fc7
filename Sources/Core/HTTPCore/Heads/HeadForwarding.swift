extension HeadWriter {
    /// Appends the field lines of a section as received and in order, except those in `omitted`
    /// and, if `dropsNominated`, those that Connection nominated. Adjacent lines are copied as one
    /// run. The empty line is not appended.
    public mutating func appendFields(
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

    /// Appends the field lines that are forwarded to the next hop: all except hop-by-hop ones
    /// (``FieldIDSet/hopByHop``), those that Connection nominated, and `omitted`. The empty line is
    /// not appended.
    @inlinable public mutating func appendForwardedFields(
        _ fields: borrowing FieldSection, of bytes: Span<UInt8>, omitting omitted: FieldIDSet = []
    ) {
        appendFields(
            fields, of: bytes, omitting: omitted.union(.hopByHop), dropsNominated: true)
    }

    /// The same for a request's fields. Takes the head so that the section is not copied, as it
    /// would be if an object's section were passed directly.
    @inlinable public mutating func appendForwardedFields(
        of head: borrowing RequestHead, in bytes: Span<UInt8>, omitting omitted: FieldIDSet = []
    ) {
        appendForwardedFields(head.fields, of: bytes, omitting: omitted)
    }

    /// Appends the method's bytes as received.
    public mutating func appendMethod(of head: borrowing RequestHead, in bytes: Span<UInt8>) {
        append(head.methodRange, of: bytes)
    }

    /// Appends the request line as it was received, or with another method.
    public mutating func appendRequestLine(
        of head: borrowing RequestHead, in bytes: Span<UInt8>, method: StaticString? = nil
    ) {
        if let method { append(method) } else { appendMethod(of: head, in: bytes) }
        append(byte: 0x20)
        append(head.target, of: bytes)
        append(head.version.requestLineEnd)
    }

    /// Appends path and query in origin-form: with a leading `/` if absolute-form omitted it, and
    /// `*` for OPTIONS of a whole server (RFC 9112 §3.2.1, §3.2.4).
    public mutating func appendOriginForm(of head: borrowing RequestHead, in bytes: Span<UInt8>) {
        if head.form == .absolute {
            if head.path.isEmpty { return append(head.method == .options ? "*" : "/") }
            if bytes[Int(head.path.start)] != Byte.slash { append("/") }
        }
        append(head.path, of: bytes)
    }
}
