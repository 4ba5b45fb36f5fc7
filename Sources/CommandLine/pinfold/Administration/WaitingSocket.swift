import CLinux
import Clocks
import EventLoop

/// Why a socket is not waited for any longer.
enum SocketWaitError: Error, Equatable {
    case timedOut
    case failed(Errno)
}

/// A socket used by a thread that may wait for it, up to a time.
struct WaitingSocket {
    let descriptor: Int32
    /// Until when it waits, on the clock of `Clock.monotonicMilliseconds`.
    let end: Int64

    /// Sends all of it.
    func send(_ bytes: [UInt8]) throws(SocketWaitError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                CLinux.send(
                    descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            guard count < 0 else {
                rest = rest.dropFirst(count)
                continue
            }
            let code = __errno_location().pointee
            guard code == EINTR || code == EAGAIN else { throw .failed(Errno(code: code)) }
            try wait(for: POLLOUT)
        }
    }

    /// What there is; nothing at the end.
    func receive() throws(SocketWaitError) -> [UInt8] {
        while true {
            try wait(for: POLLIN)
            var code: Int32 = 0
            let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { memory, count in
                let taken = recv(
                    descriptor, memory.baseAddress, memory.count, Int32(MSG_DONTWAIT))
                if taken < 0 { code = __errno_location().pointee }
                count = max(0, taken)
            }
            if code == 0 { return bytes }
            guard code == EINTR || code == EAGAIN else { throw .failed(Errno(code: code)) }
        }
    }

    /// Waits for an event of poll(2).
    func wait(for event: Int32) throws(SocketWaitError) {
        while true {
            let milliseconds = end - Clock.monotonicMilliseconds()
            guard milliseconds > 0 else { throw .timedOut }
            var state = pollfd(fd: descriptor, events: Int16(event), revents: 0)
            let count = poll(&state, 1, Int32(clamping: milliseconds))
            if count > 0 { return }
            let code = __errno_location().pointee
            guard count == 0 || code == EINTR else { throw .failed(Errno(code: code)) }
        }
    }
}
