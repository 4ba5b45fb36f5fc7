import HTTPCore

/// The tags of a stored response: the members of its Surrogate-Key, Cache-Tag and Cache-Groups
/// lines, and of lines with further names, whose members are separated by spaces or commas.
enum ResponseTags {
    /// Calls `body` with each of them.
    /// - Parameter further: further names of fields, in lower case.
    static func visit(
        _ head: UnsafeRawBufferPointer, further: [[UInt8]] = [],
        _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        visitLines(head) { line in
            visit(line: line, body)
            if !further.isEmpty { visit(line: line, further: further, body) }
        }
    }

    private static func visit(
        line: UnsafeRawBufferPointer, further: [[UInt8]],
        _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
            further.contains(where: { name in
                name.count == colon
                    && name.indices.allSatisfy { ASCII.lowercased(line[$0]) == name[$0] }
            })
        else { return }
        let value = UnsafeRawBufferPointer(rebasing: line[(colon + 1)...])
        split(value, at: { isSpace($0) || $0 == UInt8(ascii: ",") }, body)
    }

    /// Calls `body` with each line of a stored head, but for the trailers.
    static func visitLines(
        _ head: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        var start = 0
        while start < head.count {
            let end = head[start...].firstIndex(of: 0x0A) ?? head.count
            // An empty line precedes trailers.
            if end <= start + 1, start > 0 { return }
            body(UnsafeRawBufferPointer(rebasing: head[start..<end]))
            start = end + 1
        }
    }

    /// All tags, each as often as it occurs.
    static func all(
        _ head: UnsafeRawBufferPointer, further: [[UInt8]] = []
    ) -> [[UInt8]] {
        var tags: [[UInt8]] = []
        visit(head, further: further) { tags.append([UInt8]($0)) }
        return tags
    }

    private static func visit(
        line: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        // The three names begin with S or C, and have 9, 12 or 13 bytes.
        guard let first = line.first, first | 0x20 == 0x73 || first | 0x20 == 0x63,
            let colon = line.firstIndex(of: UInt8(ascii: ":"))
        else { return }
        let value = UnsafeRawBufferPointer(rebasing: line[(colon + 1)...])
        func isNamed(_ name: StaticString) -> Bool {
            guard colon == name.utf8CodeUnitCount else { return false }
            return (0..<colon).allSatisfy { ASCII.lowercased(line[$0]) == name.utf8Start[$0] }
        }
        if isNamed("surrogate-key") {
            split(value, at: isSpace, body)
        } else if isNamed("cache-tag") {
            split(value, at: { $0 == UInt8(ascii: ",") }, body)
        } else if isNamed("cache-groups") {
            strings(value, body)
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09 || byte == 0x0D
    }

    private static func split(
        _ value: UnsafeRawBufferPointer, at isSeparator: (UInt8) -> Bool,
        _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        var start = 0
        while start < value.count {
            var end = start
            while end < value.count, !isSeparator(value[end]) { end += 1 }
            var (from, to) = (start, end)
            while from < to, isSpace(value[from]) { from += 1 }
            while to > from, isSpace(value[to - 1]) { to -= 1 }
            if from < to { body(UnsafeRawBufferPointer(rebasing: value[from..<to])) }
            start = end + 1
        }
    }

    /// The strings of a structured list (RFC 9651 §3.1, §3.3.3). What is no string is passed over:
    /// a response of which one cannot be read keeps the others, so that a purge finds it.
    private static func strings(
        _ value: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void
    ) {
        var index = 0
        // Strings of parameters are not members.
        var isParameter = false
        while index < value.count {
            switch value[index] {
            case UInt8(ascii: ","): isParameter = false
            case UInt8(ascii: ";"): isParameter = true
            case UInt8(ascii: "\""):
                let start = index + 1
                var text: [UInt8] = []
                var end = start
                while end < value.count, value[end] != UInt8(ascii: "\"") {
                    if value[end] == UInt8(ascii: "\\"), end + 1 < value.count { end += 1 }
                    text.append(value[end])
                    end += 1
                }
                if !isParameter, end < value.count { text.withUnsafeBytes { body($0) } }
                index = end
            default: break
            }
            index += 1
        }
    }
}
