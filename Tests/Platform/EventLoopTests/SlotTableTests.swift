import TestSupport
import Testing

@testable import EventLoop

@Suite("Slots and generations")
struct SlotTableTests {
    @Test func `a token finds its handler`() {
        var table = SlotTable()
        let handlers = (0..<10).map { _ in Recorder() }
        let tokens = handlers.map { table.insert($0) }
        #expect(Set(tokens).count == 10)
        for (token, handler) in zip(tokens, handlers) {
            #expect(table.handler(for: token) === handler)
        }
        #expect(table.count == 10)
        #expect(table.all.count == 10)
    }

    @Test func `a slot is used again under another generation`() {
        var table = SlotTable()
        let (first, second) = (Recorder(), Recorder())
        let old = table.insert(first)
        table.remove(old)
        let new = table.insert(second)
        #expect(new.slot == old.slot)
        #expect(new.generation == old.generation + 1)
        #expect(table.handler(for: old) == nil)
        #expect(table.handler(for: new) === second)
    }

    @Test func `removing a stale token keeps the new handler`() {
        var table = SlotTable()
        let old = table.insert(Recorder())
        table.remove(old)
        let handler = Recorder()
        let new = table.insert(handler)
        table.remove(old)
        #expect(table.handler(for: new) === handler)
        #expect(table.count == 1)
    }

    @Test func `removing twice frees the slot once`() {
        var table = SlotTable()
        let token = table.insert(Recorder())
        table.remove(token)
        table.remove(token)
        #expect(table.count == 0)
        let (first, second) = (table.insert(Recorder()), table.insert(Recorder()))
        #expect(first.slot != second.slot)
        #expect(table.count == 2)
    }

    @Test func `no token and unknown slots match nothing`() {
        var table = SlotTable()
        #expect(table.handler(for: .none) == nil)
        table.remove(.none)
        table.remove(Token(slot: 0, generation: 0))
        let token = table.insert(Recorder())
        #expect(table.handler(for: .none) == nil)
        #expect(table.handler(for: Token(slot: 1, generation: 0)) == nil)
        #expect(table.handler(for: Token(slot: token.slot, generation: 7)) == nil)
        #expect(table.count == 1)
    }

    @Test func `removing releases the handler`() {
        var table = SlotTable()
        weak var weakHandler: Recorder?
        let token: Token
        do {
            let handler = Recorder()
            weakHandler = handler
            token = table.insert(handler)
        }
        #expect(weakHandler != nil)
        table.remove(token)
        #expect(weakHandler == nil)
    }

    @Test(arguments: [(0, 0), (1, 0), (0, 1), (0xFFFF_FFFE, 0xFFFF_FFFF)] as [(Int, UInt32)])
    func `a token is slot and generation`(slot: Int, generation: UInt32) {
        let token = Token(slot: slot, generation: generation)
        #expect(token.slot == slot)
        #expect(token.generation == generation)
        #expect(Token(raw: token.raw) == token)
        #expect(token != .none)
    }

    @Test func `random use follows a model`() {
        var random = SeededRandom(seed: 3)
        var table = SlotTable()
        var live: [Token: Recorder] = [:]
        var stale: [Token] = []
        for _ in 0..<5000 {
            if live.isEmpty || Bool.random(using: &random) {
                let handler = Recorder()
                let token = table.insert(handler)
                #expect(live[token] == nil)
                live[token] = handler
            } else if let token = live.keys.min(by: { $0.raw < $1.raw }) {
                table.remove(token)
                live[token] = nil
                stale.append(token)
            }
            if let old = stale.randomElement(using: &random) {
                #expect(table.handler(for: old) == nil)
            }
        }
        #expect(table.count == live.count)
        #expect(table.all.count == live.count)
        for (token, handler) in live { #expect(table.handler(for: token) === handler) }
    }
}
