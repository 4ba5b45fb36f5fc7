import Documents
public import HTTPTypes

extension HTTPRequest {
    /// The request as a command of curl, for a shell: for logs, and to try it out.
    ///
    ///     print(try HTTPRequest(.get, "https://example.com/").curlDescription())
    ///
    /// - Parameters:
    ///   - content: The content. Only content in memory that is text is in the command; otherwise
    ///     it reads standard input.
    ///   - showsSecrets: Whether Authorization, Proxy-Authorization and Cookie are as they are. By
    ///     default, their values are `***`.
    public func curlDescription(
        content: RequestContent? = nil, showsSecrets: Bool = false
    ) -> String {
        var words = ["curl"]
        switch method {
        case .head: words.append("--head")
        case .get where content == nil: break
        case .post where content != nil: break
        default: words += ["--request", Self.quoted(method.rawValue)]
        }
        for field in showsSecrets ? headerFields : headerFields.masked {
            // curl takes a field without a value for one that is to be left out.
            let line =
                field.value.isEmpty
                ? "\(field.name.rawName);" : "\(field.name.rawName): \(field.value)"
            words += ["--header", Self.quoted(line)]
        }
        if let content {
            if !headerFields.contains(.contentType) {
                // It would add a type of its own.
                words += ["--header", "'Content-Type:'"]
            }
            words += ["--data-binary", Self.quoted(content.curlText ?? "@-")]
        }
        // Otherwise curl takes brackets and braces for ranges and lists of URLs.
        if url.utf8.contains(where: { "[]{}".utf8.contains($0) }) { words.append("--globoff") }
        words.append(Self.quoted(url))
        return words.joined(separator: " ")
    }

    /// A word of a shell's command (POSIX.1-2017, Shell Command Language, section 2.2.2).
    private static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "@%+=:,./-_".utf8.contains(byte)
            }
        }
        guard !isPlain || word.isEmpty else { return word }
        return "'"
            + word.split(separator: "'", omittingEmptySubsequences: false)
            .joined(separator: #"'\''"#) + "'"
    }
}

extension RequestContent {
    /// The content as curl's `--data-binary` takes it, or `nil` if it cannot be in a command. A
    /// text that begins with `@` would be the name of a file.
    fileprivate var curlText: String? {
        guard case .bytes(let bytes) = source, bytes.first != UInt8(ascii: "@") else { return nil }
        return HARText.text(of: bytes, type: "")
    }
}
