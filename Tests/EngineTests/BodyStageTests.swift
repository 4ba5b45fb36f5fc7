import EngineTestSupport
import Testing

@testable import Engine

@Suite("A chain of stages")
struct BodyStageTests {
    private static let text = "content of a message"

    /// What comes out of a chain for parts that go in; nil behind what came when it refused.
    private func run(_ stages: [any BodyStage], _ parts: [String]) -> [String?] {
        guard let chain = BodyChain(stages) else { return parts }
        var out: [String?] = []
        func sink(_ content: UnsafeRawBufferPointer, _ owner: AnyObject) {
            #expect(content.count > 0)
            out.append(String(decoding: content, as: UTF8.self))
        }
        do throws(ExchangeFault) {
            for part in parts {
                let owned = OwnedBytes(part.utf8)
                try chain.push(UnsafeRawBufferPointer(owned.bytes), owner: owned, to: sink)
            }
            try chain.finish(to: sink)
        } catch {
            out.append(nil)
        }
        return out
    }

    private func whole(_ out: [String?]) -> String { out.map { $0 ?? "!" }.joined() }

    /// The text in two parts, cut at every place.
    private var splits: [[String]] {
        (0...Self.text.count).map {
            [String(Self.text.prefix($0)), String(Self.text.dropFirst($0))]
        }
    }

    @Test func `no stages are no chain`() { #expect(BodyChain([]) == nil) }

    @Test func `what one stage says, the chain says`() throws {
        let plain = try #require(BodyChain([MapStage.upperCase, LimitStage()]))
        #expect(!plain.changesLength && !plain.holdsHead)
        let both = try #require(BodyChain([MapStage.upperCase, MapStage.doubling, JudgeStage()]))
        #expect(both.changesLength && both.holdsHead)
    }

    @Test func `content passes one stage however it is cut`() {
        for parts in splits {
            #expect(whole(run([MapStage.upperCase], parts)) == Self.text.uppercased())
            #expect(whole(run([LimitStage()], parts)) == Self.text)
            #expect(
                whole(run([MapStage.doubling], parts))
                    == Self.text.map { "\($0)\($0)" }.joined())
        }
        let bytes = Self.text.map { String($0) }
        #expect(whole(run([MapStage.upperCase], bytes)) == Self.text.uppercased())
    }

    @Test func `stages work in their order`() {
        let marking = { MapStage { $0 == UInt8(ascii: "c") ? Array("<c>".utf8) : [$0] } }
        #expect(whole(run([marking(), MapStage.upperCase], ["cab"])) == "<C>AB")
        #expect(whole(run([MapStage.upperCase, marking()], ["cab"])) == "CAB")
        for parts in splits {
            let out = run([marking(), MapStage.doubling, MapStage.upperCase], parts)
            #expect(
                whole(out)
                    == Self.text.replacing("c", with: "<c>").uppercased()
                    .map { "\($0)\($0)" }.joined())
        }
    }

    @Test func `what is held back comes at the end`() {
        for parts in splits { #expect(run([JudgeStage()], parts) == [Self.text]) }
    }

    @Test func `what is given out at the end passes the stages behind`() {
        let out = run(
            [MapStage(last: "x") { [$0] }, MapStage(last: "y") { [$0, $0] }, JudgeStage()], ["ab"])
        #expect(out == ["aabbxxy"])
        #expect(run([JudgeStage(), MapStage.upperCase, JudgeStage()], ["a", "b"]) == ["AB"])
    }

    @Test func `what is dropped is not given on`() {
        #expect(run([MapStage { _ in [] }, MapStage.doubling], ["a", "b"]) == [])
        #expect(
            whole(run([MapStage { $0 == 0x20 ? [] : [$0] }], [Self.text])) == "contentofamessage")
    }

    @Test func `a message without content is finished too`() {
        #expect(run([MapStage(last: "{}") { [$0] }, MapStage.upperCase], []) == ["{}"])
        #expect(run([MapStage.upperCase], []) == [])
    }

    @Test func `nothing follows on a refusal`() {
        for limit in 0..<Self.text.count {
            let bytes = Self.text.map { String($0) }
            let out = run([MapStage.upperCase, LimitStage(limit), MapStage.doubling], bytes)
            #expect(out.last == .some(nil) && out.count == limit + 1)
        }
        #expect(run([JudgeStage(), MapStage.upperCase], ["b", "ad"]) == [nil])
        // Refused behind a stage that gives out at the end.
        #expect(run([JudgeStage(), LimitStage(1)], ["ok"]) == [nil])
    }
}
