import CLinux
import HTTPCore
import Testing

@testable import EventLoop

@Suite("Progress of what was sent")
struct SendProgressTests {
    /// A peer that reads nothing nevertheless acknowledges the kernel's probes.
    private func delivery(_ bytes: UInt64, age: Int64 = 0) -> Delivery {
        Delivery(acknowledgedBytes: bytes, ageMilliseconds: age)
    }

    @Test func `what was acknowledged since the last look is progress`() {
        var progress = SendProgress()
        #expect(progress.look(delivery(10), at: 1000) == 1000, "at first nothing is known")
        #expect(progress.look(delivery(10), at: 1250) == nil, "an answer to a probe is none")
        #expect(progress.look(delivery(11, age: 200), at: 1500) == 1300)
        #expect(progress.look(delivery(11, age: 450), at: 1750) == nil)
        #expect(progress.look(nil, at: 2000) == nil)
    }

    /// Time in which the process did not run is part of the age but not of the loop's clock.
    @Test func `progress is not before the previous look`() {
        var progress = SendProgress()
        _ = progress.look(delivery(10), at: 1000)
        #expect(progress.look(delivery(20, age: 60_000), at: 1250) == 1000)
    }

    @Test func `a time that is over is over`() {
        var idle = IdleTime()
        idle.note(at: 100)
        #expect(idle.nextCheck(of: 1000, at: 100) == 250)
        #expect(idle.nextCheck(of: 1000, at: 1000) == 100)
        #expect(idle.nextCheck(of: 1000, at: 1099) == 1)
        #expect(idle.nextCheck(of: 1000, at: 1100) == nil)
        idle.note(at: 50)
        #expect(idle.remaining(of: 1000, at: 1000) == 100, "progress is never taken back")
    }

    /// Whenever the peer last accepts data, the end comes after the idle time plus at most a
    /// quarter, although replies to probes keep arriving.
    @Test(arguments: [4, 1000, 60_000] as [Int64])
    func `the end comes after one idle time and at most a quarter`(time: Int64) throws {
        for last in stride(from: Int64(0), through: 3 * time, by: Int.Stride(max(1, time / 37))) {
            var (idle, progress) = (IdleTime(), SendProgress())
            idle.note(at: 0)
            var now = IdleTime.firstLook(of: time)
            while true {
                // One byte per millisecond until `last`.
                if let seen = progress.look(delivery(UInt64(min(now, last))), at: now) {
                    idle.note(at: seen)
                }
                guard let next = idle.nextCheck(of: time, at: now) else { break }
                try #require(next > 0)
                now += next
            }
            #expect(now >= last + time, "not too early: \(last)")
            #expect(now <= last + time + time / 4 + 1, "not too late: \(last)")
        }
    }

    @Test func `the kernel reports what a peer has acknowledged`() throws {
        let listener = try Sockets.listen(on: Endpoint(address: .v4(0x7F00_0001), port: 0))
        defer { Descriptors.close(listener) }
        let port = try #require(Sockets.localEndpoint(listener))
        let sender = try Sockets.connect(to: port)
        defer { Descriptors.close(sender) }
        let before = try #require(Sockets.delivery(sender)).acknowledgedBytes
        #expect(write(sender, "hello", 5) == 5)
        var after = before
        for _ in 0..<1000 where after < before + 5 {
            usleep(1000)
            after = try #require(Sockets.delivery(sender)).acknowledgedBytes
        }
        #expect(after == before + 5)
        #expect(Sockets.delivery(-1) == nil)
    }
}
