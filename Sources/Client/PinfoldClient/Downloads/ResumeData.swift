import HTTPCore
public import HTTPTypes

/// How a download that was broken off can go on: what was asked, what is there of it, and by what
/// the server tells whether the rest still belongs to it.
///
/// It is in the error of a download that failed, and lies beside its partial file, from its first
/// bytes to its end. It holds no credentials; its URL may be one that is to be kept secret.
///
///     let data = try ResumeData(text: stored)
///     let response = try await session.download(resuming: data, to: "image.iso")
public struct ResumeData: Sendable, Hashable {
    /// GET: only its responses have ranges (RFC 9110 section 14.2).
    public let method: HTTPRequest.Method
    /// What was asked, before redirects; it is asked again.
    public let url: String
    /// What answered, after redirects.
    public let responseURL: String
    /// The fields of the request by which the server chose this representation among others:
    /// Accept, Accept-Language, Accept-Charset, and what Vary names. Credentials are left out.
    public let fields: HTTPFields
    /// Goes along in If-Range.
    public let validator: RangeValidator
    /// Bytes that were written. What is in the file counts, where that is more or less.
    public internal(set) var receivedBytes: Int64
    /// Of them, bytes that were known to be on the disk, whatever happens to the machine.
    public internal(set) var durableBytes: Int64
    /// Bytes of the whole; nil: the server did not say.
    public internal(set) var expectedBytes: Int64?
    /// The path of the file with what is there, absolute.
    public internal(set) var partialFile: String
    /// The start of the machine in which the bytes were written. In a later one only the durable
    /// ones count: the rest may have been lost with its memory. Empty: not known.
    let boot: String

    /// Fields by which representations are chosen, whether the server says so or not.
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

    /// What a response can be gone on with; nil: with nothing.
    ///
    /// - Parameters:
    ///   - request: with the fields that the session adds.
    ///   - response: with status 200.
    ///   - isStored: It comes from the session's cache.
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

    /// Whether a request asks for the same: its URL and the fields that choose.
    func isOf(_ request: HTTPRequest) -> Bool {
        let names = Set(Self.choosing + fields.map(\.name))
        return request.method == method && request.url == url
            && names.allSatisfy { request.headerFields[values: $0] == fields[values: $0] }
    }

    /// Whether a URL leads to where the bytes came from. Queries may differ: they often hold a
    /// signature that is another one each time.
    func cameFrom(_ responseURL: String) -> Bool {
        func place(_ url: String) -> Substring { url.prefix { $0 != "?" } }
        return place(responseURL) == place(self.responseURL)
    }
}
