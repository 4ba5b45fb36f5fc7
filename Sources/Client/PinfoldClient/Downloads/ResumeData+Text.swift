import HTTPCore
import HTTPTypes

// The format in which resume data is stored: a JSON object.
//
//     {"pinfoldResumeData":1,"method":"GET","url":"https://example.com/a","responseURL":"…",
//      "fields":[["accept","*/*"]],"entityTag":"\"1\"","receivedBytes":10,"durableBytes":0,
//      "expectedBytes":20,"partialFile":"/tmp/a.part","boot":"…"}
extension ResumeData {
    /// The version of the format that is written, and the only one that can be read.
    public static let version = 1
    /// The maximum size of a text that is read, in bytes.
    public static let maximumTextBytes = 256 << 10

    /// The resume data as text: JSON on a single line.
    public var text: String {
        var object = JSONObject()
        object.add("pinfoldResumeData", Self.version)
        object.add("method", method.rawValue)
        object.add("url", url)
        object.add("responseURL", responseURL)
        let pairs = fields.map { field in
            "[\(JSONText.quoted(field.name.rawName)),\(JSONText.quoted(field.value))]"
        }
        object.add(raw: "fields", "[\(pairs.joined(separator: ","))]")
        switch validator {
        case .entityTag(let tag): object.add("entityTag", tag)
        case .lastModified(let date): object.add("lastModified", date)
        }
        object.add("receivedBytes", Int(receivedBytes))
        object.add("durableBytes", Int(durableBytes))
        object.add("expectedBytes", expectedBytes.map { Int($0) })
        object.add("partialFile", partialFile)
        object.add("boot", boot)
        return object.text
    }

    /// Parses a text written by ``text``.
    ///
    /// - Throws: ``ResumeDataError`` for anything else, including later versions of the format.
    public init(text: String) throws(ResumeDataError) {
        let bytes = Array(text.utf8)
        guard bytes.count <= Self.maximumTextBytes else {
            throw .tooLong(maximumBytes: Self.maximumTextBytes)
        }
        let value: JSONValue
        do throws(JSONSyntaxError) { value = try JSONReader.read(bytes[...]) } catch {
            throw .malformed("\(error.text) at byte \(error.position)")
        }
        guard case .object = value else {
            throw .malformed("it is \(value.name); expected an object")
        }
        guard let version = value["pinfoldResumeData"] else {
            throw .malformed("it has no member pinfoldResumeData")
        }
        guard version == .number("\(Self.version)") else { throw .version(version.text) }
        try self.init(Members(object: value))
    }

    private init(_ members: Members) throws(ResumeDataError) {
        guard try members.text("method") == "GET" else {
            throw .member("method", expected: "GET")
        }
        let received = try members.count("receivedBytes")
        let expected = try members.optionalCount("expectedBytes")
        guard expected.map({ received <= $0 }) ?? true else {
            throw .member("receivedBytes", expected: "no more than expectedBytes")
        }
        let durable = try members.count("durableBytes")
        guard durable <= received else {
            throw .member("durableBytes", expected: "no more than receivedBytes")
        }
        let file = try members.text("partialFile")
        guard file.hasPrefix("/"), !file.utf8.contains(0) else {
            throw .member("partialFile", expected: "an absolute path")
        }
        self.init(
            url: try members.url("url"), responseURL: try members.url("responseURL"),
            fields: try members.fields(), validator: try members.validator(),
            receivedBytes: received, durableBytes: durable, expectedBytes: expected,
            partialFile: file, boot: try members.text("boot"))
    }

    /// Reads the members of the object.
    private struct Members {
        let object: JSONValue

        func text(_ name: String) throws(ResumeDataError) -> String {
            guard case .string(let text) = object[name] else {
                throw .member(name, expected: "a string")
            }
            return text
        }

        func url(_ name: String) throws(ResumeDataError) -> String {
            let text = try text(name)
            do throws(ClientError) { _ = try HTTPRequest(.get, text) } catch {
                throw .member(name, expected: "an absolute http or https URL")
            }
            return text
        }

        func optionalCount(_ name: String) throws(ResumeDataError) -> Int64? {
            if object[name] == .null { return nil }
            return try count(name)
        }

        func count(_ name: String) throws(ResumeDataError) -> Int64 {
            guard case .number(let digits) = object[name], let count = Int64(digits), count >= 0
            else { throw .member(name, expected: "a number of bytes") }
            return count
        }

        func fields() throws(ResumeDataError) -> HTTPFields {
            let expected = "a list of pairs of a field's name and its value"
            guard case .array(let pairs) = object["fields"] else {
                throw .member("fields", expected: expected)
            }
            var fields = HTTPFields()
            for pair in pairs {
                guard case .array(let sides) = pair, sides.count == 2,
                    case .string(let name) = sides[0], case .string(let value) = sides[1],
                    let name = HTTPField.Name(name), HTTPField.isValidValue(value)
                else { throw .member("fields", expected: expected) }
                fields.append(HTTPField(name: name, value: value))
            }
            return fields
        }

        func validator() throws(ResumeDataError) -> RangeValidator {
            switch (object["entityTag"], object["lastModified"]) {
            case (.string(let tag), nil):
                guard RangeValidator.isStrong(tag) else {
                    throw .member("entityTag", expected: "a strong entity tag in quotes")
                }
                return .entityTag(tag)
            case (nil, .string(let date)):
                guard RangeValidator.isDate(date) else {
                    throw .member("lastModified", expected: "a date as in RFC 9110")
                }
                return .lastModified(date)
            default:
                throw .member("entityTag", expected: "a string, or one as lastModified")
            }
        }
    }
}

/// An error in parsing resume data.
public enum ResumeDataError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The text has more than this number of bytes.
    case tooLong(maximumBytes: Int)
    /// The text is not JSON, or not the JSON of resume data.
    case malformed(String)
    /// The version is not supported; its value as written.
    case version(String)
    /// A member is missing or invalid.
    case member(String, expected: String)

    public var description: String {
        switch self {
        case .tooLong(let maximum):
            "the resume data is longer than \(maximum) bytes"
        case .malformed(let reason):
            "this is not resume data: \(reason)"
        case .version(let found):
            "the resume data has version \(found); expected \(ResumeData.version)"
        case .member(let name, let expected):
            "the resume data's \(name): expected \(expected)"
        }
    }
}
