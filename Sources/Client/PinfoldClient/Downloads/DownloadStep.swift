import HTTPCore
import HTTPTypes

/// What to do after the head of a response to a download's request. It is a value without side
/// effects.
enum DownloadStep: Equatable {
    /// Write the content at an offset, and keep what is before it. The number of bytes to come and
    /// the complete length are `nil` if they are unknown.
    case take(from: Int64, count: Int64?, total: Int64?)
    /// Request the whole content again, without a range.
    case restart
    /// All bytes may be there already: request the last one again to confirm that.
    case stepBack
    case refuse(DownloadError.Reason)

    /// What was requested.
    struct RangeRequest: Equatable {
        /// The first byte of the range, or `nil` for the whole content.
        var offset: Int64?
        /// Whether the caller's request has a Range field.
        var hasOwnRange = false
        /// How the existing part can be resumed, or `nil` if there is none.
        var resume: ResumeData?
        /// Whether the last byte has already been requested again.
        var hasSteppedBack = false
        var acceptedStatusCodes: ClosedRange<Int> = 200...299
    }

    /// Decides what to do after a response.
    ///
    /// - Parameters:
    ///   - response: The head of the response.
    ///   - responseURL: The URL of the response, after redirects.
    init(_ asked: RangeRequest, _ response: HTTPResponse, from responseURL: String) {
        switch response.status.code {
        case 206: self = Self.part(asked, response, responseURL)
        case 416 where asked.offset != nil:
            let isWhole = response.contentRange == .unsatisfied(total: asked.offset ?? 0)
            self = isWhole && !asked.hasSteppedBack ? .stepBack : .restart
        case let code where asked.acceptedStatusCodes.contains(code):
            self = .take(from: 0, count: response.contentLength, total: response.contentLength)
        case let code: self = .refuse(.status(code))
        }
    }

    /// Checks a partial response (RFC 9110 section 15.3.7).
    private static func part(
        _ asked: RangeRequest, _ response: HTTPResponse, _ responseURL: String
    ) -> DownloadStep {
        guard let offset = asked.offset, let resume = asked.resume else {
            guard asked.hasOwnRange else {
                return .refuse(.range("206 Partial Content, although no range was requested"))
            }
            return .take(from: 0, count: response.contentLength, total: response.contentLength)
        }
        let types = response.headerFields[values: .contentType].map(\.lowercasedASCII)
        guard !types.contains(where: { $0.hasPrefix("multipart/byteranges") }) else {
            return .refuse(.range("several ranges (multipart/byteranges) instead of one"))
        }
        // An entity tag says nothing about the bytes of another resource.
        guard resume.cameFrom(responseURL) else { return .restart }
        let range: String?
        do throws(ConflictingFieldLinesError) {
            range = try response.headerFields.single(.contentRange)
        } catch {
            return .refuse(.range("\(error)"))
        }
        guard let text = range else {
            return .refuse(.range("206 Partial Content without Content-Range"))
        }
        guard case .part(let first, let last, let total) = ContentRange(text) else {
            return .refuse(.range("Content-Range: \(text), which is not a single range of bytes"))
        }
        guard first == offset else {
            return .refuse(.range("bytes from \(first); requested from \(offset)"))
        }
        if let total, let expected = resume.expectedBytes, total != expected {
            return .refuse(.range("a total of \(total) bytes; before, it was \(expected)"))
        }
        let count = last - first + 1
        if let length = response.contentLength, length != count {
            return .refuse(.range("\(length) bytes of content for a range of \(count)"))
        }
        guard !resume.validator.isContradicted(by: response) else {
            return .refuse(.range("a range of content that has changed"))
        }
        guard !response.hasCodedContent else {
            return .refuse(.range("a range of encoded content (Content-Encoding)"))
        }
        return .take(from: offset, count: count, total: total ?? resume.expectedBytes)
    }
}
