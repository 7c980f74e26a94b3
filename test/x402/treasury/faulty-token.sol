// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// An ERC-20 token that does what it should, or what broken and unusual ones do. Anyone may mint, and say how it behaves.
contract FaultyToken {
    enum Behaviour {
        Plain,
        /// `transfer` returns false, and moves nothing.
        ReturnsFalse,
        /// `transfer` moves the money, and returns nothing.
        ReturnsNothing,
        /// A tenth stays behind, and the event says what arrived.
        TakesFee,
        /// A tenth stays behind, and the event says nothing of it.
        HidesFee,
        /// `transfer` returns true, and moves nothing.
        MovesNothing,
        /// `transfer` reverts.
        Paused,
        /// `transfer` uses up all of its gas.
        BurnsGas,
        /// `transfer` moves the money twice.
        MovesTwice,
        /// The holder loses a tenth more than the event says.
        ChargesMore
    }

    string public constant symbol = "USDC";
    uint8 public constant decimals = 6;

    Behaviour public behaviour;
    mapping(address => bool) public isRefused;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;

    event Transfer(address indexed from, address indexed to, uint256 value);

    function behave(Behaviour as_) external {
        behaviour = as_;
    }

    function refuse(address account, bool isIt) external {
        isRefused[account] = isIt;
    }

    function mint(address to, uint256 value) external {
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    /// For tokens whose balances change without an event.
    function setBalance(address holder, uint256 value) external {
        totalSupply = totalSupply - balanceOf[holder] + value;
        balanceOf[holder] = value;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        require(behaviour != Behaviour.Paused, "Pausable: paused");
        require(!isRefused[to], "Blacklistable: account is blacklisted");
        if (behaviour == Behaviour.BurnsGas) assert(gasleft() == 0);
        if (behaviour == Behaviour.ReturnsFalse) return false;
        if (behaviour == Behaviour.MovesNothing) return true;
        _move(to, value);
        if (behaviour == Behaviour.MovesTwice) _move(to, value);
        if (behaviour == Behaviour.ReturnsNothing) assembly { return(0, 0) }
        return true;
    }

    function _move(address to, uint256 value) private {
        require(value <= balanceOf[msg.sender], "ERC20: transfer amount exceeds balance");
        bool costs = behaviour == Behaviour.TakesFee || behaviour == Behaviour.HidesFee;
        uint256 arrives = costs ? value - value / 10 : value;
        uint256 leaves = behaviour == Behaviour.ChargesMore ? value + value / 10 : value;
        balanceOf[msg.sender] -= leaves;
        balanceOf[to] += arrives;
        totalSupply -= leaves - arrives;
        emit Transfer(msg.sender, to, behaviour == Behaviour.HidesFee ? value : arrives);
    }
}
