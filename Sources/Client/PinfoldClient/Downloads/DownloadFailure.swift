import CLinux
public import HTTPTypes

/// Why a download came to nothing: what ``ClientError/underlying`` is in the errors of downloads.
public struct DownloadFailure: Error, Sendable, CustomStringConvertible {
    /// What went wrong.
    public let problem: DownloadProblem
    /// By which it can go on; nil where it cannot, and where its partial file was removed.
    public let resumeData: ResumeData?
    /// The head of the response, where there was one.
    public let response: HTTPResponse?
    /// What was wrong with the request, where the problem is ``DownloadProblem/transfer``: what
    /// ``ClientError/underlying`` is where the same request is made for data.
    public let underlying: (any Error)?

    public var description: String { problem.description }
}

/// What is wrong with a download.
public enum DownloadProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// The request failed, or its response broke off; or it was cancelled.
    case transfer
    /// The response has a status that is not accepted.
    case status(Int)
    /// The server sent another part of the content than the one asked for. Downloaded anew, without
    /// being resumed, it may succeed.
    case range(String)
    /// There are more or fewer bytes than the server had said.
    case length(expected: Int64, found: Int64)
    /// A file could not be read or written.
    case file(FileProblem)
    /// The disk is full, or a quota or limit of the user's is reached. What is there is kept.
    case noSpace(FileProblem)
    /// There is a file at the destination, and it is not to be replaced.
    case destinationExists(String)
    /// The destination is none: an empty path, a folder.
    case destinationInvalid(String, expected: String)
    /// The partial file is one of another user's, a link, or no regular file.
    case partialFileUnsafe(String)
    /// Something is in the partial file's place, and no resume data lies beside it: it may be the
    /// user's own.
    case partialFileUnknown(String)
    /// Somebody has moved, removed or replaced the partial file while it was being written. What
    /// has its name now stays as it is.
    case partialFileLost(String)
    /// Another download, of this process or another one, is writing the same partial file.
    case busy(String)
    /// The caller's function that chooses the destination has failed.
    case choosing(String)
    /// The options contradict each other.
    case options(String)

    public var description: String {
        switch self {
        case .transfer: "the transfer failed"
        case .status(let code): "status \(code); expected a successful one"
        case .range(let text): "the server answered the range with \(text)"
        case .length(let expected, let found): "\(found) bytes; expected \(expected)"
        case .file(let problem): problem.description
        case .noSpace(let problem): "no space left: \(problem)"
        case .destinationExists(let path):
            "\(path) exists; expected no file there, or the option to replace it"
        case .destinationInvalid(let path, let expected):
            "the destination \"\(path)\": expected \(expected)"
        case .partialFileUnsafe(let path):
            "\(path) is not a regular file of this user; it is not written to"
        case .partialFileUnknown(let path):
            "\(path) exists, and nothing says that it is of a download; expected no file there "
                + "(remove or rename it), or the option to replace it"
        case .partialFileLost(let path):
            "\(path) was moved, removed or replaced while it was being written"
        case .busy(let path): "\(path) is being written by another download"
        case .choosing(let text): "no destination was chosen: \(text)"
        case .options(let text): text
        }
    }

    var reason: ClientError.Reason {
        switch self {
        case .transfer, .range, .length: .badResponse
        case .status: .unacceptableStatus
        case .file, .noSpace, .destinationExists, .destinationInvalid, .partialFileUnsafe,
            .partialFileUnknown, .partialFileLost, .busy:
            .fileFailed
        case .choosing, .options: .invalidRequest
        }
    }
}

/// A system call about a file that failed.
public struct FileProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// What was being done.
    public enum Operation: String, Sendable, Hashable, CaseIterable {
        /// Opening or creating it.
        case open
        /// Locking it, so that no other download writes it.
        case lock
        /// Reading it, or what the system knows of it.
        case read
        /// Writing to it.
        case write
        /// Cutting off its end.
        case shorten
        /// Having the disk keep what was written.
        case sync
        /// Giving it another name.
        case move
        /// Removing it.
        case remove
    }

    /// What was being done.
    public let operation: Operation
    /// The file that it was done to.
    public let path: String
    /// The system's error number (errno(3)).
    public let code: Int32

    public var description: String {
        "\(path): \(operation.rawValue): \(String(cString: strerror(code)))"
    }

    /// A call that failed.
    ///
    /// - Parameter code: the error number; that of the call that was just made.
    static func last(
        _ operation: Operation, _ path: String, _ code: Int32 = __errno_location().pointee
    ) -> DownloadProblem {
        let problem = FileProblem(operation: operation, path: path, code: code)
        switch code {
        case ENOSPC, EDQUOT, EFBIG: return .noSpace(problem)
        default: return .file(problem)
        }
    }
}

extension ClientError {
    /// By which a download that failed can go on; nil where it cannot, or this is no error of one.
    public var resumeData: ResumeData? { (underlying as? DownloadFailure)?.resumeData }

    /// A download's failure. Without a response nothing was sent.
    init(
        _ problem: DownloadProblem, of request: HTTPRequest, _ response: HTTPResponse?,
        _ resumeData: ResumeData?
    ) {
        let failure = DownloadFailure(
            problem: problem, resumeData: resumeData, response: response, underlying: nil)
        self.init(problem.reason, "\(problem)", of: request, underlying: failure)
        wasNotProcessed = response == nil
    }

    /// The error of a download's request, as one of the download.
    func failing(_ response: HTTPResponse?, _ resumeData: ResumeData?) -> ClientError {
        var error = self
        error.underlying = DownloadFailure(
            problem: .transfer, resumeData: resumeData, response: response, underlying: underlying)
        // The request failed that was the last; one before it had a response.
        if response != nil { error.wasNotProcessed = false }
        return error
    }
}
