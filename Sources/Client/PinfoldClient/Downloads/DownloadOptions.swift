public import HTTPTypes
import Serialization

/// Where a downloaded file goes.
public enum DownloadDestination: Sendable, ExpressibleByStringLiteral {
    /// A path; a relative one is below the current folder.
    case path(String)
    /// Chosen by the response that is to be written: called once, when its head has arrived.
    /// ``DownloadResponse/suggestedName(for:_:)`` is what most use as the last part.
    case chosen(@Sendable (_ response: HTTPResponse, _ request: HTTPRequest) throws -> String)

    public init(stringLiteral path: String) { self = .path(path) }
}

/// How a download is written.
public struct DownloadOptions: Sendable {
    /// What is special about its request.
    public var request = RequestOptions()
    /// A file at the destination is replaced, and one in the place of the partial file of which
    /// nothing says that it is a download's. Else the download fails: before it begins, if the file
    /// is there by then.
    public var replacesExisting = false
    /// Goes on with what an earlier download of the same URL to the same destination has left, be
    /// it of this process or of one that was killed; and leaves something to go on with, however it
    /// ends. Where nothing fits, it begins anew.
    ///
    /// Only what GET asks for can go on, and only where the server names a strong validator.
    public var resumes = false
    /// A download that fails leaves its partial file and ``ResumeData``, where it can go on. One
    /// that is cancelled leaves it only by ``SessionTask/cancelProducingResumeData()``, or with
    /// ``resumes``.
    public var keepsPartialFile = true
    /// The folder of the partial file; nil: the destination's. It must be on the same file system,
    /// for the file is moved by renaming it. To resume where the destination is chosen by the
    /// response, there must be one.
    public var folder: String?
    /// Any other status is an error, so that no error page is taken for the file.
    public var acceptedStatus: ClosedRange<Int> = 200...299

    /// Each option at its default.
    public init() {}
}

/// A download that is complete.
public struct DownloadResponse: Sendable {
    /// The head of the last response; of one with status 206, if it was resumed.
    public let head: HTTPResponse
    /// What was asked last, after redirects.
    public let request: HTTPRequest
    /// Where the file is, absolute.
    public let path: String
    /// Bytes of the file.
    public let length: Int64
    /// Of them, bytes that were there before the call.
    public let resumedBytes: Int64
    /// One transaction for each request, redirects and beginnings anew included.
    public let metrics: TaskMetrics
}

extension DownloadResponse {
    /// A file name for a response: that of its Content-Disposition (RFC 6266), else the last part
    /// of the request's path; never one that leads to another folder. `download` where there is
    /// none. A field that is not UTF-8 is read as ISO 8859-1; fields that differ say nothing.
    public static func suggestedName(
        for response: HTTPResponse, _ request: HTTPRequest
    ) -> String {
        SuggestedName.name(
            disposition: try? response.headerFields.single(.contentDisposition),
            path: request.path ?? "/")
    }
}
