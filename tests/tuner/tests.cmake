hone_test(tuner winner LINK hone_tuner)
hone_test(tuner strategy LINK hone_tuner)
hone_test(tuner sweep LINK hone_tuner)
