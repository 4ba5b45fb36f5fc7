import CLinux

/// Moves bytes between sockets, memory, files and pipes, without ever blocking.
public enum Transfers {
    /// Reads once into `memory`, which must not be empty.
    @inline(__always)
    @inlinable public static func read(_ fd: Int32, into memory: UnsafeMutableRawBufferPointer)
        -> IOResult
    {
        while true {
            let count = socket_receive(fd, memory.baseAddress, memory.count)
            if count > 0 { return .bytes(count) }
            if count == 0 { return .endOfStream }
            let error = Errno(negated: count)
            if error == .again { return .wouldBlock }
            if error != .interrupted { return .failed(error) }
        }
    }

    /// Reads once into `memory`, which must not be empty, and leaves in the socket what was read.
    public static func peek(_ fd: Int32, into memory: UnsafeMutableRawBufferPointer) -> IOResult {
        while true {
            let count = recv(
                fd, memory.baseAddress, memory.count, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
            if count > 0 { return .bytes(count) }
            if count == 0 { return .endOfStream }
            let error = Errno.last
            if error == .again { return .wouldBlock }
            if error != .interrupted { return .failed(error) }
        }
    }

    /// Writes once; a result of fewer bytes than requested means that the socket is full.
    @inline(__always)
    public static func write(_ fd: Int32, _ bytes: UnsafeRawBufferPointer) -> IOResult {
        while true {
            let count = socket_send(fd, bytes.baseAddress, bytes.count)
            if count >= 0 { return .bytes(count) }
            let error = Errno(negated: count)
            if error == .again { return .wouldBlock }
            if error != .interrupted { return .failed(error) }
        }
    }

    /// Writes several runs of bytes in one call. `more` tells the kernel that more follows
    /// immediately, so that it need not send a short segment.
    @inline(__always)
    public static func write(
        _ fd: Int32, vectors: UnsafeMutableBufferPointer<iovec>, more: Bool = false
    ) -> IOResult {
        var message = msghdr()
        message.msg_iov = vectors.baseAddress
        message.msg_iovlen = vectors.count
        let flags = Int32(MSG_NOSIGNAL) | (more ? Int32(MSG_MORE) : 0)
        while true {
            let count = sendmsg(fd, &message, flags)
            if count >= 0 { return .bytes(count) }
            let error = Errno.last
            if error == .again { return .wouldBlock }
            if error != .interrupted { return .failed(error) }
        }
    }

    /// Sends `count` bytes of a file from `offset` without copying them through the process.
    public static func sendFile(_ fd: Int32, file: Int32, offset: Int, count: Int) -> IOResult {
        var position = off_t(offset)
        while true {
            let sent = sendfile(fd, file, &position, count)
            if sent > 0 { return .bytes(sent) }
            if sent == 0 { return .endOfStream }
            let error = Errno.last
            if error == .again { return .wouldBlock }
            if error != .interrupted { return .failed(error) }
        }
    }

    /// Fills `memory` with the file's contents from `offset`. Returns `false` if the file ends
    /// before that or cannot be read.
    public static func read(
        file: Int32, offset: Int, into memory: UnsafeMutableRawBufferPointer
    ) -> Bool {
        guard let start = memory.baseAddress else { return memory.isEmpty }
        var filled = 0
        while filled < memory.count {
            let count = pread(
                file, start + filled, memory.count - filled, off_t(offset + filled))
            if count > 0 {
                filled += count
            } else if count == 0 || Errno.last != .interrupted {
                return false
            }
        }
        return true
    }

    /// Moves up to `count` bytes between a pipe and a socket inside the kernel. `wouldBlock` is
    /// returned if either end cannot continue; the caller knows how full the pipe is and therefore
    /// which one.
    public static func splice(from source: Int32, to sink: Int32, count: Int) -> IOResult {
        let flags = UInt32(PINFOLD_SPLICE_F_MOVE | PINFOLD_SPLICE_F_NONBLOCK)
        while true {
            let moved = CLinux.splice(source, nil, sink, nil, count, flags)
            if moved > 0 { return .bytes(moved) }
            if moved == 0 { return .endOfStream }
            let error = Errno.last
            if error == .again { return .wouldBlock }
            if error != .interrupted { return .failed(error) }
        }
    }

    /// Whether there is something to read or, on a listening socket, to accept.
    public static func isReadable(_ fd: Int32) -> Bool {
        var asked = pollfd(fd: fd, events: Int16(POLLIN), revents: 0)
        return poll(&asked, 1, 0) > 0
    }

    /// Whether a socket has received bytes that have not been read yet.
    public static func hasUnreadBytes(_ fd: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(fd, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) > 0
    }

    /// Whether a socket has neither bytes nor an end of stream or error to read, as is the case for
    /// an idle connection that can be used.
    public static func isQuiet(_ fd: Int32) -> Bool {
        var byte: UInt8 = 0
        let count = recv(fd, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        return count < 0 && Errno.last == .again
    }
}
