import Testing

@testable import HTTPCore

/// The error of a text; `nil` if it is JSON.
private func failure(_ text: [UInt8], memory: Int = .max) -> JSONParsingError? {
    text.withUnsafeBytes { bytes in
        var parser = JSONParser(
            bytes, limits: JSONLimits(depth: 32, memory: memory), keepsEvents: true)
        do throws(JSONParsingError) { try parser.parse() } catch { return error }
        return nil
    }
}

/// The kinds of a text's events, and the bytes of those that have some.
private func events(_ text: String) -> [String] {
    Array(text.utf8).withUnsafeBytes { bytes in
        var parser = JSONParser(bytes, limits: JSONLimits(depth: 32), keepsEvents: true)
        do throws(JSONParsingError) { try parser.parse() } catch { return ["\(error)"] }
        var list: [String] = []
        for event in parser.eventList {
            let isDecoded = event.kind == .decodedString || event.kind == .decodedName
            let range = Int(event.offset)..<Int(event.offset + event.length)
            let text = (isDecoded ? parser.decodedBytes : bytes)[range]
            list.append(
                "\(event.kind)" + (range.isEmpty ? "" : " ") + String(decoding: text, as: UTF8.self)
            )
        }
        return list
    }
}

@Suite("JSON: the parser")
struct JSONParserTests {
    @Test func `the events of a text are in its order, with the bytes of the text`() {
        #expect(
            events(#"{"a":[1,-2.5e3,"x","\n"],"\u0062":{"":null},"c":[true,false,[],{}]}"#) == [
                "object", "name a", "array", "number 1", "number -2.5e3", "string x",
                "decodedString \n", "arrayEnd", "decodedName b", "object", "name", "null",
                "objectEnd", "name c", "array", "true", "false", "array", "arrayEnd", "object",
                "objectEnd", "arrayEnd", "objectEnd",
            ])
    }

    @Test func `each byte is seen wherever it stands among plain ones in a string`() {
        for length in 1...18 {
            for place in 0..<length {
                for byte in UInt8.min...UInt8.max {
                    var text =
                        [0x22] + [UInt8](repeating: UInt8(ascii: "z"), count: length) + [0x22]
                    text[place + 1] = byte
                    let found = failure(text)
                    let expected: JSONParsingError? =
                        switch byte {
                        case 0..<0x20: JSONParsingError(.controlCharacter, at: place + 1)
                        case 0x80...: JSONParsingError(.notUTF8, at: place + 1)
                        case UInt8(ascii: "\""): JSONParsingError(.moreAfterValue, at: place + 2)
                        case UInt8(ascii: "\\"):
                            place + 1 < length
                                ? JSONParsingError(.notAnEscape, at: place + 1)
                                : JSONParsingError(.endInString, at: length + 2)
                        default: nil
                        }
                    #expect(found == expected, "\(length) \(place) \(byte)")
                }
            }
        }
    }

    @Test func `a character is taken if it is well-formed, also at the end of the text`() {
        let seconds: [UInt8] = [0x20, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF]
        let others: [UInt8] = [0x41, 0x7F, 0x80, 0xBF, 0xC0]
        for first in UInt8(0x80)...0xFF {
            for second in seconds {
                for third in others {
                    for character in others.map({ [first, second, third, $0] })
                        + [[first], [first, second], [first, second, third]]
                    {
                        let isText = String(validating: character, as: UTF8.self) != nil
                        let found = failure([0x22] + character + [0x22])
                        #expect((found == nil) == isText, "\(character)")
                        #expect(
                            found == nil
                                || found == failure([0x22] + character + [0x22, 0x20, 0x20, 0x20]))
                        #expect(found.map { $0.reason == .notUTF8 } ?? true)
                        #expect(failure([0x22] + character) != nil)
                    }
                }
            }
        }
    }

    @Test func `numbers and white space of every length end where they end`() {
        for length in 1...20 {
            let digits = String(repeating: "7", count: length)
            for number in [digits, "-" + digits, "0." + digits, "1e" + digits, "1E-" + digits] {
                #expect(events(number) == ["number " + number])
                #expect(events("[\(number)]")[1] == "number " + number)
                for end in ["/", ":", "a", "\0", "é"] {
                    let error = failure(Array((number + end).utf8))
                    #expect(error == JSONParsingError(.moreAfterValue, at: number.utf8.count))
                }
            }
            for space in [" ", "\n", "\t", "\r", "\n  "] {
                let space = String(repeating: space, count: length)
                #expect(events(space + "[" + space + "]" + space) == ["array", "arrayEnd"])
                let error = failure(Array((space + "\u{B}").utf8))
                #expect(error == JSONParsingError(.notAValue, at: space.utf8.count))
            }
        }
    }

    @Test func `an error is at the same byte of the text, whatever stands before it`() {
        let texts = [
            "nulx", "-x", "1.x", "1ex", "\"\\q\"", "\"\\u12\"", "\"\\ud800\"", "[1 2]", "{\"a\" 1}",
            "{\"a\":1,\"a\":2}", "{\"\\u0061\":1,\"a\":2}", "[1,]", "\"\u{1}\"", "{1}", "[1", "{",
            "\"",
        ]
        for text in texts {
            let found = failure(Array(text.utf8))
            for count in 1...17 {
                let moved = failure([UInt8](repeating: 0x20, count: count) + Array(text.utf8))
                #expect(moved?.reason == found?.reason && moved?.length == found?.length, "\(text)")
                #expect(moved?.offset == found.map { $0.offset + count }, "\(text)")
            }
        }
    }

    @Test func `a duplicate has the bytes of the name`() {
        let text = #"{"a":1,"\u0061" :2}"#
        #expect(failure(Array(text.utf8)) == JSONParsingError(.duplicateName, at: 7, length: 8))
    }

    /// Around the number from which on names are sorted and not compared one by one.
    @Test(arguments: [2, 63, 64, 65, 66, 200])
    func `a duplicate is found among any number of names`(count: Int) {
        for (first, second) in [(0, count - 1), (count / 2 - 1, count - 1), (0, 1)] {
            var names = (0..<count).map { "12345678-\($0 + 1000)-12345678" }
            names[second] = names[first]
            let members = names.map { "\"\($0)\":0" }
            let error = failure(Array("{\(members.joined(separator: ","))}".utf8))
            #expect(error?.reason == .duplicateName && error?.length == 24)
            #expect(error?.offset == 1 + members[..<second].reduce(0) { $0 + $1.utf8.count + 1 })
        }
    }

    @Test func `without memory there is an error, and all that was taken is counted`() {
        let object = #"{"\u0061":["\n\n\n\n\n\n\n\n",1,[2]],"b":{"c":{"d":[]}}}"#
        _ = leastMemory(for: "[\((0..<100).map { _ in object }.joined(separator: ","))]")
    }

    @Test func `the memory for sorting many names is counted`() {
        // As long as one another, and with room for the same number of events and names.
        let sizes = [1100, 2000].map { count in
            let text = "{\((0..<count).map { "\"\($0)\":0" }.joined(separator: ","))}"
            return leastMemory(
                for: text + String(repeating: " ", count: 40_000 - text.utf8.count))
        }
        #expect(abs(sizes[1] - sizes[0] - 900 * MemoryLayout<UInt64>.size) <= 512)
    }

    /// In bytes, to the next 512; with less there is an error.
    private func leastMemory(for text: String) -> Int {
        let refused = stride(from: 0, to: 200_000, by: 512).filter { memory in
            guard let error = failure(Array(text.utf8), memory: memory) else { return false }
            #expect(error.reason == .outOfMemory)
            return true
        }
        #expect(refused.count > 10)
        #expect(refused == Array(stride(from: 0, to: refused.count * 512, by: 512)))
        return refused.count * 512
    }
}
