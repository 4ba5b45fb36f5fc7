/// Reads XML property lists as programs write them: the usual declaration and document type, and
/// tags without attributes. This takes a fraction of expat's time for the same document.
///
/// There are no errors here. If a document contains anything else, whether valid or not, this
/// stops, and expat reads the document from its beginning: what is read here is read the same way
/// by expat.
struct PlainPropertyListReader<Sink: DocumentSink>: ~Copyable {
    private var cursor: PlainXMLCursor
    private var events: PropertyListEvents<Sink>

    init(
        _ bytes: UnsafeRawBufferPointer, limits: DocumentLimits,
        into sink: UnsafeMutablePointer<Sink>
    ) {
        cursor = PlainXMLCursor(bytes)
        events = PropertyListEvents(sink, limits: limits)
    }

    /// - Returns: whether the document was read; if not, the sink may have received some of its
    ///   events.
    mutating func read() -> Bool {
        guard startRoot() else { return false }
        do throws(DocumentError) {
            guard try readValues() else { return false }
        } catch { return false }
        cursor.skipSpace()
        return cursor.isAtEnd
    }

    private mutating func startRoot() -> Bool {
        _ = cursor.skip(#"<?xml version="1.0" encoding="UTF-8"?>"#)
        cursor.skipSpace()
        if cursor.skip("<!DOCTYPE") {
            guard
                cursor.skip(#" plist PUBLIC "-//Apple//DTD PLIST 1.0//EN""#)
                    || cursor.skip(#" plist PUBLIC "-//Apple Computer//DTD PLIST 1.0//EN""#),
                cursor.skip(#" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">"#)
            else { return false }
            cursor.skipSpace()
        }
        guard cursor.skip(#"<plist version="1.0">"#) || cursor.skip("<plist>") else {
            return false
        }
        events.startRoot()
        return true
    }

    /// Reads up to the end of the root element.
    private mutating func readValues() throws(DocumentError) -> Bool {
        while let container = events.container {
            cursor.skipSpace()
            if cursor.isAtEndTag {
                guard cursor.skipEndTag(UnsafeRawBufferPointer(container)) else { return false }
                try events.end()
            } else {
                guard var name = cursor.startTag() else { return false }
                let isEmpty = name.last == UInt8(ascii: "/")
                if isEmpty {
                    name = UnsafeRawBufferPointer(rebasing: name.dropLast())
                    if name.last == 0x20 {
                        name = UnsafeRawBufferPointer(rebasing: name.dropLast())
                    }
                }
                guard let element = PropertyListElement(name) else { return false }
                try events.start(element, name)
                if isEmpty {
                    try events.end()
                } else if !element.isContainer {
                    guard try readText(of: name) else { return false }
                }
            }
        }
        return true
    }

    private mutating func readText(
        of name: UnsafeRawBufferPointer
    ) throws(DocumentError) -> Bool {
        // For expat, text that continues after a comment is one text.
        guard let text = cursor.text(), cursor.skipEndTag(name) else { return false }
        if !text.isEmpty { try events.text(text) }
        try events.end()
        return true
    }
}
