public import HTTPTypes

/// The destination of a download.
public enum DownloadDestination: Sendable, ExpressibleByStringLiteral {
    /// A path. A relative path is resolved against the current directory.
    case path(String)
    /// Chooses the destination based on the response. It is called once, when the head of the
    /// response to be written has arrived. Most callers use
    /// ``DownloadResponse/suggestedName(for:_:)`` as the last path component.
    case chosen(@Sendable (_ response: HTTPResponse, _ request: HTTPRequest) throws -> String)

    public init(stringLiteral path: String) { self = .path(path) }
}

/// Options for a download.
public struct DownloadOptions: Sendable {
    /// The options for the request.
    public var request = RequestOptions()
    /// Whether an existing file at the destination is replaced, and also a file at the path of the
    /// partial file that is not known to be one. If `false` and such a file exists, the download
    /// fails; before it begins, if the file already exists then.
    public var replacesExisting = false
    /// Whether to resume what an earlier download of the same URL to the same destination has left,
    /// in this process or in one that was killed, and to leave resumable data however the download
    /// ends. If nothing matches, the download starts from the beginning.
    ///
    /// Only GET requests can be resumed, and only if the server provides a strong validator.
    public var resumes = false
    /// Whether a failed download leaves its partial file and ``ResumeData`` if it can be resumed. A
    /// cancelled download leaves them only if ``SessionTask/cancelProducingResumeData()`` was
    /// called or ``resumes`` is set.
    public var keepsPartialFile = true
    /// The directory of the partial file, or `nil` for that of the destination. It must be on the
    /// same file system as the destination, because the file is moved by renaming it. It is
    /// required to resume downloads whose destination is chosen by the response.
    public var partialFileDirectory: String?
    /// The accepted status codes. Any other status is an error, so that an error page is not saved
    /// as the file.
    public var acceptedStatusCodes: ClosedRange<Int> = 200...299

    /// Creates options with default values.
    public init() {}
}

/// A completed download.
public struct DownloadResponse: Sendable {
    /// The head of the last response. If the download was resumed, it has status 206.
    public let head: HTTPResponse
    /// The last request, after redirects.
    public let request: HTTPRequest
    /// The absolute path of the file.
    public let path: String
    /// The size of the file in bytes.
    public let length: Int64
    /// The number of bytes that were there before the call.
    public let resumedBytes: Int64
    /// The metrics, with one transaction for each request, including redirects and restarts.
    public let metrics: TaskMetrics
}

extension DownloadResponse {
    /// Returns a file name for a response: the one in its Content-Disposition (RFC 6266), otherwise
    /// the last component of the request's path, and `download` if there is neither. The name never
    /// leads to another directory. A field that is not valid UTF-8 is decoded as ISO 8859-1;
    /// several fields that differ are ignored.
    public static func suggestedName(
        for response: HTTPResponse, _ request: HTTPRequest
    ) -> String {
        SuggestedName.name(
            disposition: try? response.headerFields.single(.contentDisposition),
            path: request.path ?? "/")
    }
}
