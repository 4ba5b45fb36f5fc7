import HTTPCore
import HTTPTypes
import Serialization

/// What follows on the head of a response to a download's request. A value, without any effect.
enum DownloadStep: Equatable {
    /// The content is written from an offset on. So many bytes follow, of so many in all; nil: that
    /// is not known. What lies before the offset stays.
    case take(from: Int64, count: Int64?, total: Int64?)
    /// The whole is asked for again, without a range.
    case beginAnew
    /// All bytes may be there already: the last one is asked for again, to have it confirmed.
    case stepBack
    case refuse(DownloadProblem)

    /// What was asked.
    struct Question: Equatable {
        /// From which byte on; nil: for the whole.
        var offset: Int64?
        /// The caller's own request has a Range field.
        var hasOwnRange = false
        /// How the part that is there can go on; nil where there is none.
        var resume: ResumeData?
        /// The last byte has been asked for again before.
        var hasSteppedBack = false
        var acceptedStatus: ClosedRange<Int> = 200...299
    }

    /// - Parameters:
    ///   - response: The head.
    ///   - responseURL: What answered, after redirects.
    init(_ question: Question, _ response: HTTPResponse, from responseURL: String) {
        switch response.status.code {
        case 206: self = Self.part(question, response, responseURL)
        case 416 where question.offset != nil:
            let isWhole = response.contentRange == .unsatisfied(total: question.offset ?? 0)
            self = isWhole && !question.hasSteppedBack ? .stepBack : .beginAnew
        case let code where question.acceptedStatus.contains(code):
            self = .take(from: 0, count: response.contentLength, total: response.contentLength)
        case let code: self = .refuse(.status(code))
        }
    }

    /// A part of the whole (RFC 9110 section 15.3.7).
    private static func part(
        _ question: Question, _ response: HTTPResponse, _ responseURL: String
    ) -> DownloadStep {
        guard let offset = question.offset, let resume = question.resume else {
            guard question.hasOwnRange else {
                return .refuse(.range("206 Partial Content, though the whole was asked for"))
            }
            return .take(from: 0, count: response.contentLength, total: response.contentLength)
        }
        let types = response.headerFields[values: .contentType].map(\.lowercasedASCII)
        guard !types.contains(where: { $0.hasPrefix("multipart/byteranges") }) else {
            return .refuse(.range("several ranges (multipart/byteranges) in place of one"))
        }
        // A tag says nothing about another resource's bytes.
        guard resume.cameFrom(responseURL) else { return .beginAnew }
        let range: String?
        do throws(ConflictingFieldLines) {
            range = try response.headerFields.single(.contentRange)
        } catch {
            return .refuse(.range("\(error)"))
        }
        guard let text = range else {
            return .refuse(.range("206 Partial Content without Content-Range"))
        }
        guard case .part(let first, let last, let total) = ContentRange(text) else {
            return .refuse(.range("Content-Range: \(text), which is not one range of bytes"))
        }
        guard first == offset else {
            return .refuse(.range("bytes from \(first) on; asked for from \(offset) on"))
        }
        if let total, let expected = resume.expectedBytes, total != expected {
            return .refuse(.range("\(total) bytes in all, and \(expected) before"))
        }
        let count = last - first + 1
        if let length = response.contentLength, length != count {
            return .refuse(.range("\(length) bytes of content for a range of \(count)"))
        }
        guard !resume.validator.isContradicted(by: response) else {
            return .refuse(.range("a part of something that has changed since"))
        }
        guard !response.hasCodedContent else {
            return .refuse(.range("a part that is coded (Content-Encoding)"))
        }
        return .take(from: offset, count: count, total: total ?? resume.expectedBytes)
    }
}
