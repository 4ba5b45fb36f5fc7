import CLinux
public import HTTPTypes

/// A failed download. It is the ``ClientError/underlying`` error of errors from downloads.
public struct DownloadError: Error, Sendable, CustomStringConvertible {
    /// What went wrong.
    public let reason: Reason
    /// The data to resume the download with, or `nil` if it cannot be resumed or its partial file
    /// was removed.
    public let resumeData: ResumeData?
    /// The head of the response, if there was one.
    public let response: HTTPResponse?
    /// The error of the request if the reason is ``Reason/transfer``: the value that
    /// ``ClientError/underlying`` would have for the same request in a data task.
    public let underlying: (any Error)?

    public var description: String { reason.description }
}

extension DownloadError {
    /// The reason why a download failed.
    public enum Reason: Error, Sendable, Hashable, CustomStringConvertible {
        /// The request failed, its response was interrupted, or it was cancelled.
        case transfer
        /// The status of the response is not accepted.
        case status(Int)
        /// The server sent a different range than was requested. The download may succeed if it is
        /// started again without resuming.
        case range(String)
        /// The number of bytes differs from what the server had announced.
        case length(expected: Int64, found: Int64)
        /// A file could not be read or written.
        case file(FileOperationError)
        /// The disk is full, or a quota or another limit was reached. What has been downloaded is
        /// kept.
        case noSpace(FileOperationError)
        /// There is a file at the destination, and it must not be replaced.
        case destinationExists(String)
        /// The destination is not valid: an empty path or a directory.
        case destinationInvalid(String, expected: String)
        /// The partial file belongs to another user, is a link, or is not a regular file.
        case partialFileUnsafe(String)
        /// There is something at the path of the partial file, but no resume data beside it. It may
        /// be a file of the user's.
        case partialFileUnknown(String)
        /// The partial file was moved, removed or replaced while it was being written. Whatever has
        /// its name now is left unchanged.
        case partialFileLost(String)
        /// Another download, in this process or another one, is writing the same partial file.
        case busy(String)
        /// The caller's closure that chooses the destination has thrown an error.
        case choosing(String)
        /// The options contradict each other.
        case options(String)

        public var description: String {
            switch self {
            case .transfer: "the transfer failed"
            case .status(let code): "status \(code); expected a successful one"
            case .range(let text): "the server answered the range with \(text)"
            case .length(let expected, let found): "\(found) bytes; expected \(expected)"
            case .file(let error): error.description
            case .noSpace(let error): "no space left: \(error)"
            case .destinationExists(let path):
                "\(path) exists; expected no file there, or the option to replace it"
            case .destinationInvalid(let path, let expected):
                "the destination \"\(path)\": expected \(expected)"
            case .partialFileUnsafe(let path):
                "\(path) is not a regular file of this user; it is not written to"
            case .partialFileUnknown(let path):
                "\(path) exists and is not known to be a partial download; expected no file there "
                    + "(remove or rename it), or the option to replace it"
            case .partialFileLost(let path):
                "\(path) was moved, removed or replaced while it was being written"
            case .busy(let path): "\(path) is being written by another download"
            case .choosing(let text): "the destination could not be chosen: \(text)"
            case .options(let text): text
            }
        }

        var clientReason: ClientError.Reason {
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
}

/// A failed system call on a file.
public struct FileOperationError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The operation that failed.
    public enum Operation: String, Sendable, Hashable, CaseIterable {
        /// Opening or creating the file.
        case open
        /// Locking the file, so that no other download writes it.
        case lock
        /// Reading the file or its attributes.
        case read
        /// Writing to the file.
        case write
        /// Truncating the file.
        case shorten
        /// Flushing the file to disk.
        case sync
        /// Renaming the file.
        case move
        /// Removing the file.
        case remove
    }

    /// The operation that failed.
    public let operation: Operation
    /// The path of the file.
    public let path: String
    /// The system's error number (errno(3)).
    public let code: Int32

    public var description: String {
        "\(path): \(operation.rawValue): \(String(cString: strerror(code)))"
    }

    /// Creates an error for a failed call.
    ///
    /// - Parameter code: The error number; by default that of the last system call.
    static func last(
        _ operation: Operation, _ path: String, _ code: Int32 = __errno_location().pointee
    ) -> DownloadError.Reason {
        let error = FileOperationError(operation: operation, path: path, code: code)
        switch code {
        case ENOSPC, EDQUOT, EFBIG: return .noSpace(error)
        default: return .file(error)
        }
    }
}

extension ClientError {
    /// The data to resume a failed download with, or `nil` if it cannot be resumed or this error is
    /// not from a download.
    public var resumeData: ResumeData? { (underlying as? DownloadError)?.resumeData }

    /// Creates the error of a download. Without a response, nothing was sent.
    init(
        _ reason: DownloadError.Reason, of request: HTTPRequest, _ response: HTTPResponse?,
        _ resumeData: ResumeData?
    ) {
        let error = DownloadError(
            reason: reason, resumeData: resumeData, response: response, underlying: nil)
        self.init(reason.clientReason, "\(reason)", of: request, underlying: error)
        wasNotProcessed = response == nil
    }

    /// Converts the error of a download's request to the error of the download.
    func failing(_ response: HTTPResponse?, _ resumeData: ResumeData?) -> ClientError {
        var error = self
        error.underlying = DownloadError(
            reason: .transfer, resumeData: resumeData, response: response, underlying: underlying)
        // It was the last request that failed. If there was a response, an earlier one was
        // processed.
        if response != nil { error.wasNotProcessed = false }
        return error
    }
}
