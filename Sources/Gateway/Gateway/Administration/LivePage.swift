import CLivePage

/// The live page: files of the program's own, without any data. Its scripts read the API, for which
/// they ask for the token.
enum LivePage {
    /// One of its files.
    struct File: Sendable {
        let path: String
        let response: AdminResponse
    }

    /// What a browser may do with the page: load what is at the same address, and nothing written
    /// into the page itself. No other page may show it in a frame, or learn where it leads.
    static let protection = [
        AdminResponse.Field(
            "Content-Security-Policy",
            "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
        AdminResponse.Field("X-Content-Type-Options", "nosniff"),
        AdminResponse.Field("Referrer-Policy", "no-referrer"),
        AdminResponse.Field("Cross-Origin-Opener-Policy", "same-origin"),
        AdminResponse.Field("Cross-Origin-Resource-Policy", "same-origin"),
    ]

    /// What a browser shows first.
    static let shell = response("index.html")

    /// The file at a path; `nil` if there is none.
    static func file(at path: Substring) -> File? { files[String(path)] }

    private static let files: [String: File] = {
        var files: [String: File] = [:]
        var index = 0
        while let file = live_page_file(index)?.pointee {
            let name = String(cString: file.name)
            let path = "/page/\(name)"
            files[path] = File(path: path, response: response(name, file))
            index += 1
        }
        return files
    }()

    private static func response(_ name: String) -> AdminResponse {
        guard let file = file(at: "/page/\(name)") else {
            preconditionFailure("the live page has no \(name)")
        }
        return file.response
    }

    private static func response(_ name: String, _ file: live_page_file) -> AdminResponse {
        // A browser that kept a file beyond an upgrade would mix two versions.
        AdminResponse(
            status: 200, contentType: contentType(of: name),
            fields: [AdminSite.noStore] + protection,
            body: Array(UnsafeBufferPointer(start: file.bytes, count: file.count)))
    }

    private static func contentType(of name: String) -> StaticString {
        switch name.split(separator: ".").last {
        case "html": "text/html; charset=utf-8"
        case "css": "text/css; charset=utf-8"
        case "js": "text/javascript; charset=utf-8"
        case "svg": "image/svg+xml"
        default: "application/octet-stream"
        }
    }
}
