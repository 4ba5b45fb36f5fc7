import CLinux
import Testing
import Threads

@testable import EventLoop

/// The sender, and the number among its messages.
private struct Letter: Sendable, Equatable {
    var sender: Int
    var number: Int
}

/// Runs `body` on this many threads, each with its number, along with `meanwhile`; joins them all.
private func withThreads(
    _ count: Int, _ body: @escaping @Sendable (Int) -> Void, meanwhile: () throws -> Void
) throws {
    guard count > 0 else { return try meanwhile() }
    let thread = try Thread(name: "test-\(count - 1)") { body(count - 1) }
    try withThreads(count - 1, body, meanwhile: meanwhile)
    thread.join()
}

@Suite("Mailboxes")
struct MailboxTests {
    /// The wakes that were signalled and not yet consumed.
    private func wakes(_ event: Int32) -> UInt64 {
        var value: UInt64 = 0
        return read(event, &value, 8) == 8 ? value : 0
    }

    @Test func `messages come in order`() throws {
        let mailbox = try Mailbox<Int>()
        for number in 0..<100 { mailbox.post(number) }
        #expect(mailbox.take() == Array(0..<100))
        #expect(mailbox.take().isEmpty)
    }

    @Test func `many messages wake once until they are taken`() throws {
        let mailbox = try Mailbox<Int>()
        #expect(wakes(mailbox.event) == 0)
        for number in 0..<50 { mailbox.post(number) }
        #expect(wakes(mailbox.event) == 1)
        mailbox.post(50)
        #expect(wakes(mailbox.event) == 0)
        _ = mailbox.take()
        mailbox.post(51)
        #expect(wakes(mailbox.event) == 1)
    }

    @Test func `one turn delivers everything that is queued`() throws {
        let loop = try EventLoop()
        let mailbox = try Mailbox<Int>()
        var received: [Int] = []
        let receiver = MailboxReceiver(mailbox) { received.append($0) }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
        for number in 0..<10 { mailbox.post(number) }
        loop.turn()
        #expect(received == Array(0..<10))
        // Drained: the next turn has nothing to do.
        loop.turn(waitingAtMost: 0)
        #expect(received.count == 10)
    }

    @Test func `a message posted while another is handled comes with the next turn`() throws {
        let loop = try EventLoop()
        let mailbox = try Mailbox<Int>()
        var received: [Int] = []
        let receiver = MailboxReceiver(mailbox) { number in
            received.append(number)
            if number < 3 { mailbox.post(number + 1) }
        }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
        mailbox.post(1)
        loop.turn()
        #expect(received == [1])
        loop.turn()
        loop.turn()
        #expect(received == [1, 2, 3])
    }

    @Test func `messages of many threads all arrive, in each sender's order`() throws {
        let (senders, each) = (8, 2000)
        let loop = try EventLoop()
        let mailbox = try Mailbox<Letter>()
        var next = [Int](repeating: 0, count: senders)
        var isOrdered = true
        let receiver = MailboxReceiver(mailbox) { [unowned loop] letter in
            if letter.number != next[letter.sender] { isOrdered = false }
            next[letter.sender] += 1
            if next.allSatisfy({ $0 == each }) { loop.stop() }
        }
        try loop.add(receiver, descriptor: receiver.descriptor, trigger: .levelReadable)
        try withThreads(senders) { sender in
            for number in 0..<each { mailbox.post(Letter(sender: sender, number: number)) }
        } meanwhile: {
            loop.run()
        }
        #expect(isOrdered)
        #expect(next == [Int](repeating: each, count: senders))
    }

    @Test func `a message wakes a loop that sleeps`() throws {
        let mailbox = try Mailbox<Int>()
        let thread = try Thread(name: "sleeper") {
            guard let loop = try? EventLoop() else { return }
            let receiver = MailboxReceiver(mailbox) { [unowned loop] _ in loop.stop() }
            guard
                (try? loop.add(
                    receiver, descriptor: receiver.descriptor, trigger: .levelReadable)) != nil
            else { return }
            loop.run()
        }
        mailbox.post(1)
        thread.join()
        #expect(mailbox.take().isEmpty)
    }

    @Test func `the event descriptor is closed with the mailbox`() throws {
        // In a separate descriptor table for the thread, in which no other test opens descriptors.
        let outcome = try inOwnDescriptorTable {
            guard let mailbox = try? Mailbox<Int>() else { return "no mailbox" }
            let event = mailbox.event
            guard fcntl_int(event, F_GETFD, 0) == FD_CLOEXEC else { return "not close-on-exec" }
            return "\(event)"
        } then: { event in
            guard let fd = Int32(event) else { return event }
            return fcntl_int(fd, F_GETFD, 0) == -1 ? "closed" : "open"
        }
        #expect(outcome == "closed")
    }
}
