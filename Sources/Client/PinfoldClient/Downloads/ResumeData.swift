import HTTPCore
public import HTTPTypes

/// The data needed to resume an interrupted download: what was requested, how much of it has been
/// downloaded, and how the server can tell whether the rest still belongs to it.
///
/// The error of a failed download contains it, and it is stored beside the partial file from the
/// first bytes until the end. It contains no credentials, but its URL may be a secret.
///
///     let data = try ResumeData(text: stored)
///     let response = try await session.download(resuming: data, to: "image.iso")
public struct ResumeData: Sendable, Hashable {
    /// The method: always GET, because only its responses have ranges (RFC 9110 section 14.2).
    public let method: HTTPRequest.Method
    /// The URL that was requested, before redirects. It is requested again.
    public let url: String
    /// The URL of the response, after redirects.
    public let responseURL: String
    /// The request fields by which the server selected this representation: Accept,
    /// Accept-Language, Accept-Charset, and the fields named by Vary. Credentials are not included.
    public let fields: HTTPFields
    /// The validator for If-Range.
    public let validator: RangeValidator
    /// The number of bytes written. If the file has more or fewer, the file's size is used.
    public internal(set) var receivedBytes: Int64
    /// The number of bytes that were safely on disk.
    public internal(set) var durableBytes: Int64
    /// The complete length in bytes, or `nil` if the server did not say.
    public internal(set) var expectedBytes: Int64?
    /// The absolute path of the partial file.
    public internal(set) var partialFile: String
    /// The boot of the machine during which the bytes were written. After a reboot, only the
    /// durable bytes count, because the rest may have been lost. Empty if it is unknown.
    let boot: String

    /// The fields that select a representation, even if Vary does not name them.
    static let choosing: [HTTPField.Name] = [.accept, .acceptLanguage, acceptCharset]
    private static let acceptCharset = HTTPField.Name("Accept-Charset") ?? .accept
    private static let credentials: Set<HTTPField.Name> = [
        .authorization, .cookie, .proxyAuthorization,
    ]

    init(
        url: String, responseURL: String, fields: HTTPFields, validator: RangeValidator,
        receivedBytes: Int64 = 0, durableBytes: Int64 = 0, expectedBytes: Int64?,
        partialFile: String, boot: String
    ) {
        method = .get
        self.url = url
        self.responseURL = responseURL
        self.fields = fields
        self.validator = validator
        self.receivedBytes = receivedBytes
        self.durableBytes = durableBytes
        self.expectedBytes = expectedBytes
        self.partialFile = partialFile
        self.boot = boot
    }

    /// Returns the data to resume a response with, or `nil` if it cannot be resumed.
    ///
    /// - Parameters:
    ///   - request: The request, including the fields added by the session.
    ///   - response: The response, with status 200.
    ///   - isStored: Whether the response comes from the session's cache.
    init?(
        of request: HTTPRequest, _ response: HTTPResponse, from responseURL: String,
        in partialFile: String, boot: String, isStored: Bool = false
    ) {
        guard request.method == .get, !request.headerFields.contains(.range),
            response.status.code == 200, !response.hasCodedContent,
            response.headerFields[.acceptRanges]?.lowercasedASCII != "none",
            let validator = RangeValidator(response, isStored: isStored)
        else { return nil }
        self.init(
            url: request.url, responseURL: responseURL,
            fields: Self.fields(of: request, varying: response.headerFields[.vary]),
            validator: validator, expectedBytes: response.contentLength, partialFile: partialFile,
            boot: boot)
    }

    private static func fields(of request: HTTPRequest, varying vary: String?) -> HTTPFields {
        let named = (vary ?? "").split(separator: ",").compactMap {
            HTTPField.Name(String($0.filter { $0 != " " && $0 != "\t" }))
        }
        let names = Set(choosing + named).subtracting(credentials).subtracting([.acceptEncoding])
        return HTTPFields(request.headerFields.filter { names.contains($0.name) })
    }

    /// Whether a request asks for the same representation: its URL and its selecting fields are
    /// equal.
    func matches(_ request: HTTPRequest) -> Bool {
        let names = Set(Self.choosing + fields.map(\.name))
        return request.method == method && request.url == url
            && names.allSatisfy { request.headerFields[values: $0] == fields[values: $0] }
    }

    /// Whether the bytes came from the same resource as a URL. Queries may differ, because they
    /// often contain a signature that changes each time.
    func cameFrom(_ responseURL: String) -> Bool {
        func withoutQuery(_ url: String) -> Substring { url.prefix { $0 != "?" } }
        return withoutQuery(responseURL) == withoutQuery(self.responseURL)
    }
}
