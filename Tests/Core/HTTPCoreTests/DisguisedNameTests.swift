import HTTPCore
import Testing

/// Names that are known ones to a reader that treats `_` as `-`.
@Suite("Names with _ in place of -")
struct DisguisedNameTests {
    /// Every way of writing `_` for some hyphens of a name, at least one.
    private func disguises(_ name: String) -> [String] {
        let hyphens = name.indices.filter { name[$0] == "-" }
        return (1..<(1 << hyphens.count)).map { choice in
            var spelling = Array(name)
            for (bit, index) in hyphens.enumerated() where choice & (1 << bit) != 0 {
                spelling[name.distance(from: name.startIndex, to: index)] = "_"
            }
            return String(spelling)
        }
    }

    private func spellings(_ id: FieldID) -> [String] {
        disguises("\(id.name)").flatMap { [$0, $0.lowercased(), $0.uppercased()] }
    }

    @Test func `the set is every framing or hop-by-hop field with a hyphen in its name`() {
        let framing: FieldIDSet = [.init(.contentLength), .init(.maxForwards)]
        let expected = FieldIDSet.hopByHop.union(framing).ids.filter { id in
            "\(id.name)".contains("-")
        }
        #expect(FieldID.disguisable == FieldIDSet(expected))
    }

    @Test(arguments: FieldID.disguisable.ids)
    func `a request with a disguised name is refused`(id: FieldID) throws {
        for name in spellings(id) {
            // Also at the end of the head, where fewer bytes follow than a word has.
            for more in ["X: \(String(repeating: "y", count: 40))\r\n", ""] {
                for value in ["", "chunked"] {
                    let text =
                        "POST / HTTP/1.1\r\nHost: a\r\n\(name):\(value)\r\n\(more)\r\n"
                    #expect(requestOutcome(text).error == .disguisedFieldName, "\(name)")
                }
            }
        }
        #expect(WireError.disguisedFieldName.status == 400)
    }

    @Test(arguments: FieldID.disguisable.ids)
    func `a response or a trailer section with one loses it on its way`(id: FieldID) throws {
        for name in spellings(id) {
            let text = "HTTP/1.1 204 x\r\nX-A: 1\r\n\(name): 5\r\nX-B: 2\r\n\r\n"
            #expect(responseOutcome(text).isComplete)
            let head = try responseHead(text)
            #expect(head.fields.map(\.id) == [.other, .disguised, .other])
            #expect(head.framing == .none)
            let forwarded = written { writer in
                writer.appendForwardedFields(head.fields, of: latin1(text).span)
            }
            #expect(forwarded == "X-A: 1\r\nX-B: 2\r\n")
        }
        #expect(FieldIDSet.forbiddenInTrailers.contains(.disguised))
    }

    @Test func `other names with underscores are other fields`() throws {
        let names = [
            "user_agent", "_", "____", "keep__alive", "keep_alive_", "_keep_alive", "keep_a_ive",
            "content_type", "x_transfer_encoding", "transfer_encoding_", "http3_settings",
            "proxy_authentication_in_o", String(repeating: "_", count: 80),
        ]
        for name in names {
            let text = "GET / HTTP/1.1\r\nHost: a\r\n\(name): 5\r\n\r\n"
            #expect(requestOutcome(text).isComplete, "\(name)")
            #expect(try requestHead(text).fields[1].id == .other, "\(name)")
        }
    }
}
