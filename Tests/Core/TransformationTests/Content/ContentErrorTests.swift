import Documents
import PinfoldConfiguration
import Testing

@testable import Transformation

@Suite("Failures of content")
struct ContentErrorTests {
    private func failure(
        _ content: [UInt8], _ from: BodyFormat = .json, type: String? = nil
    ) throws -> TransformationError {
        var rules = RequestRules()
        rules.body = RequestBodyRules(from: from, to: from == .form ? .json : .form)
        let translation = try #require(RequestTranslation(rules))
        return try #require(
            #expect(throws: TransformationError.self) {
                try translation.translate(content, contentType: type)
            })
    }

    @Test(arguments: [0, 1, 2, 3, 99, 100, 150, 299, 300])
    func `show at most 200 bytes around their place`(offset: Int) {
        let content = Array((0..<300).map { UInt8(ascii: "a") + UInt8($0 % 26) })
        let excerpt = TransformationError.excerpt(of: content, around: offset, maximum: 200)
        #expect(excerpt.count == 200)
        let start = min(max(0, offset - 100), 100)
        #expect(excerpt == Array(content[start..<start + 200]))
    }

    @Test(arguments: 0..<40)
    func `show whole characters`(offset: Int) throws {
        let content = Array(String(repeating: "aé漢😀", count: 4).utf8)
        for maximum in 1...content.count + 1 {
            let excerpt = TransformationError.excerpt(
                of: content, around: offset, maximum: maximum)
            let text = try #require(String(validating: excerpt, as: UTF8.self))
            #expect(excerpt.count <= maximum)
            #expect(String(decoding: content, as: UTF8.self).contains(text) || text.isEmpty)
        }
    }

    @Test func `show question marks for what is not UTF-8`() throws {
        let found = try failure([0x22, 0x61, 0xFF, 0x62, 0x22])
        #expect(found.excerpt == Array("\"a?b\"".utf8))
        #expect(found.detail == "its encoding is not supported")
        #expect(found.location == "line 1, column 3")
    }

    @Test func `show what was found of ISO-8859-1 in UTF-8`() throws {
        let found = try failure(
            [0x5B, 0x22, 0xE9, 0x22], type: "application/json; charset=iso-8859-1")
        #expect(found.excerpt == Array("[\"é\"".utf8))
    }

    @Test func `show control characters as they are, but in their words`() throws {
        let found = try failure(Array("<\u{1B}a>".utf8), .xml)
        #expect(found.excerpt == Array("<\u{1B}a>".utf8))
        let name = try failure(Array("{\"\\u001b\":{\"\\u0007\":[[[x".utf8))
        #expect(name.location == "line 1, column 24, at $.\u{FFFD}.\u{FFFD}[0][0][0]")
    }

    @Test(
        arguments: [
            "{\"\(String(repeating: "é", count: 500))\":x",
            String(repeating: "{\"abcdefgh\":", count: 100) + String(repeating: " ", count: 300),
        ])
    func `have at most 200 bytes of the content, names of the path included`(
        content: String
    ) throws {
        let found = try failure(Array(content.utf8))
        let place = try #require(found.location)
        let path = try #require(place.firstRange(of: "at $.").map { place[$0.upperBound...] })
        #expect(path.utf8.count <= 60 && path.hasSuffix("…"))
        #expect(path.utf8.count + found.excerpt.count <= 200)
        #expect(found.excerpt.count > 100)
    }

    @Test(
        arguments: [
            (.memory, .overloaded), (.tooManyValues(maximum: 1), .responseBodyTooLarge),
            (.tooLarge(maximum: 1), .responseBodyTooLarge),
            (.outputTooLarge(maximum: 1), .responseBodyTooLarge),
            (.tooDeep(maximum: 1), .responseBodyInvalid),
            (.numberOutOfRange("1"), .responseBodyInvalid),
            (.unrepresentable("x"), .responseBodyUntranslatable),
            (.entity("an entity"), .responseBodyInvalid),
        ] as [(DocumentError.Reason, TransformationReason)])
    func `are called by their reason`(
        reason: DocumentError.Reason, problem: TransformationReason
    ) {
        let found = TransformationError(
            DocumentError(.json, reason), .response, source: .json, content: [])
        #expect(found.reason == problem)
        #expect(found.location == nil && found.excerpt.isEmpty)
    }
}
