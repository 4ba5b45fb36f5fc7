import CLinux
import ImageCodecs
import Locking
import PinfoldConfiguration
import TestSupport
import Testing
import Threads
import Transformation

@testable import Imaging

@Suite("A process that decodes")
struct WorkerFaultTests {
    private let image = SampleImage.png()

    @Test func `that is killed at work costs one image`() throws {
        let service = try TestWorker.shell(
            TestWorker.greeting + TestWorker.take(SampleImage.png()) + "kill -9 $$")
        let failure = service.refusal(of: image)
        #expect(failure?.reason == .responseImageRefused)
        #expect(failure?.detail == "the image decoding process was killed by signal 9")
        #expect(service.processes.isEmpty)
        // The next is another process's.
        #expect(service.refusal(of: image)?.reason == .responseImageRefused)
    }

    @Test func `that ends at work costs one image`() throws {
        let service = try TestWorker.shell(
            TestWorker.greeting + TestWorker.take(SampleImage.png()) + "exit 7")
        #expect(
            service.refusal(of: image)?.detail
                == "the image decoding process exited with code 7")
    }

    @Test func `that was killed while it had nothing to do costs nothing`() throws {
        let service = try TestWorker.service()
        #expect(service.refusal(of: image) == nil)
        let old = try #require(service.processes.first)
        kill(old.pid, SIGKILL)
        // Its end of the socket is closed when it is gone.
        var entry = pollfd(fd: old.descriptor, events: Int16(POLLIN), revents: 0)
        #expect(poll(&entry, 1, 60_000) == 1)
        #expect(service.refusal(of: image) == nil)
        #expect(service.processes.first?.pid != old.pid)
        #expect(!isThere(old.pid))
    }

    @Test func `that hangs is killed`() throws {
        let service = try TestWorker.service { $0.longestWork = 200_000_000 }
        // Started, and stopped before its first question.
        var rules = ImageRules()
        rules.accept = [.png]
        while service.refusal(of: image, by: rules) != nil {}
        let pid = try #require(service.processes.first?.pid)
        kill(pid, SIGSTOP)
        let failure = service.refusal(of: image)
        #expect(failure?.reason == .responseImageRefused)
        #expect(failure?.detail == "decoding the image took longer than 200 milliseconds")
        #expect(!isThere(pid))
    }

    @Test(
        arguments: [
            // No answer; one that is too long; of a type that was not requested; that is not a PNG.
            #"printf 'XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX'"#,
            #"printf 'PFI1\001\000\000\000\377\377\377\377\377\000\000\000'; head -c 24 /dev/zero"#,
            #"printf 'PFI1\001\000\002\000\001\000\000\000\000\000\000\000'; head -c 25 /dev/zero"#,
            #"printf 'PFI1\001\000\000\000\004\000\000\000\000\000\000\000'; head -c 28 /dev/zero"#,
        ])
    func `that answers nonsense is not believed`(answer: String) throws {
        let service = try TestWorker.shell(
            TestWorker.greeting + TestWorker.take(SampleImage.png()) + answer
                + "; exec cat >/dev/null")
        let failure = service.refusal(of: image)
        #expect(failure?.reason == .responseImageRefused)
        #expect(failure?.detail == "the image decoding process gave no valid answer")
        #expect(service.processes.isEmpty)
    }

    @Test(
        arguments: [
            "exit 3", "printf 'XXXXXXXX'; exec cat >/dev/null", "printf 'PFI1'",
        ])
    func `that does not greet is the gateway's fault`(script: String) throws {
        let failure = try TestWorker.shell(script).refusal(of: image)
        #expect(failure?.reason == .overloaded)
        #expect(failure?.detail == "a process that decodes images did not begin to work")
    }

    @Test func `that cannot be started is the gateway's fault`() throws {
        let service = try TestWorker.service { $0.command = ["/nonexistent/worker"] }
        let failure = service.refusal(of: image)
        #expect(failure?.reason == .overloaded)
        #expect(failure?.detail.contains("No such file or directory") == true)
        #expect(service.processes.isEmpty)
    }

    @Test func `that never sends its greeting is given up`() throws {
        let service = try TestWorker.shell("exec cat >/dev/null") { $0.longestStart = 50_000_000 }
        #expect(service.refusal(of: image)?.reason == .overloaded)
        #expect(service.processes.isEmpty)
    }

    @Test func `is waited for only for a limited time`() throws {
        let service = try TestWorker.shell(TestWorker.greeting + "exec cat >/dev/null") {
            $0.longestWait = 50_000_000
        }
        let image = image
        let first = try Thread(name: "test") { _ = service.refusal(of: image) }
        #expect(becomesTrue { service.processes.count == 1 })
        let failure = service.refusal(of: image)
        #expect(failure?.reason == .overloaded)
        #expect(failure?.detail == "no process that decodes images became free in time")
        service.end()
        first.join()
    }

    @Test func `is replaced after a number of images`() throws {
        let service = try TestWorker.service { $0.imagesPerProcess = 2 }
        #expect(service.refusal(of: image) == nil)
        let first = try #require(service.processes.first?.pid)
        #expect(service.refusal(of: image) == nil)
        #expect(service.processes.isEmpty && !isThere(first))
        #expect(service.refusal(of: image) == nil)
        #expect(service.processes.count == 1)
    }

    @Test func `is replaced where an image may need more memory`() throws {
        let service = try TestWorker.service()
        #expect(service.refusal(of: image) == nil)
        let first = try #require(service.processes.first?.pid)
        var rules = ImageRules()
        rules.maximumPixels *= 2
        #expect(service.refusal(of: image, by: rules) == nil)
        let second = try #require(service.processes.first?.pid)
        #expect(second != first && !isThere(first))
        // It has enough for the first rules, too.
        #expect(service.refusal(of: image) == nil)
        #expect(service.processes.first?.pid == second)
    }

    @Test func `ends when it has long had nothing to do`() throws {
        let service = try TestWorker.service { $0.longestIdle = 1_000_000 }
        #expect(service.refusal(of: image) == nil)
        #expect(becomesTrue { service.processes.isEmpty })
        #expect(service.refusal(of: image) == nil)
    }

    /// The sockets among our descriptors.
    private func sockets() throws -> Set<UInt64> {
        var inodes: Set<UInt64> = []
        let folder = try #require(opendir("/proc/self/fd"))
        defer { closedir(folder) }
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if let descriptor = Int32(name), let inode = inode(of: descriptor) {
                inodes.insert(inode)
            }
        }
        return inodes
    }

    private func inode(of descriptor: Int32) -> UInt64? {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return nil }
        guard status.st_mode & UInt32(S_IFMT) == UInt32(S_IFSOCK) else { return nil }
        return UInt64(status.st_ino)
    }

    @Test func `leaves neither a process nor a descriptor behind`() throws {
        let service = try TestWorker.service { $0.processes = 2 }
        let image = image
        var seen: [(pid: pid_t, inode: UInt64)] = []
        for round in 0..<3 {
            var rules = ImageRules()
            rules.maximumPixels <<= round
            #expect(service.refusal(of: image, by: rules) == nil)
            for process in service.processes where process.descriptor >= 0 {
                seen.append((process.pid, try #require(inode(of: process.descriptor))))
            }
        }
        #expect(Set(seen.map(\.pid)).count == 3)
        #expect(try !sockets().isDisjoint(with: seen.map(\.inode)))
        service.end()
        #expect(service.processes.isEmpty)
        #expect(try sockets().isDisjoint(with: seen.map(\.inode)))
        for process in seen { #expect(!isThere(process.pid)) }
        #expect(service.refusal(of: image)?.reason == .overloaded)
        service.end()
    }

    @Test func `at work is ended with the service`() throws {
        let service = try TestWorker.shell(TestWorker.greeting + "exec cat >/dev/null")
        let image = image
        let failure = Locked<TransformationError?>(nil)
        let caller = try Thread(name: "test") {
            let refusal = service.refusal(of: image)
            failure.withLock { $0 = refusal }
        }
        #expect(becomesTrue { service.processes.count == 1 })
        let pid = try #require(service.processes.first?.pid)
        service.end()
        caller.join()
        #expect(!isThere(pid))
        #expect(
            failure.withLock { $0?.detail }
                == "the image decoding process was killed by signal 9")
    }
}
